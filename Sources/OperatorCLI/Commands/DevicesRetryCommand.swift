import ArgumentParser

struct DevicesRetryCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Try wakes now that pause before their next attempt.",
        discussion: """
            Each attempt that fails makes the pause longer, up to ten minutes. What merges notifications stays as it is.
            """)

    @OptionGroup var devices: DevicesReleaseOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await devices.run(
            .retry, done: "tried now", needless: "no attempt is put off", in: context)
    }
}
