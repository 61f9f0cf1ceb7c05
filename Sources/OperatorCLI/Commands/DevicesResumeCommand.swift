import ArgumentParser

struct DevicesResumeCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Send to devices again that a push service has refused.",
        discussion: """
            Such a device is set aside until its phone registers again. When the refusal was the fault of a key or of a list, this ends it; what waits for the client wakes it then.
            """)

    @OptionGroup var devices: DevicesReleaseOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await devices.run(
            .resume, done: "resumed", needless: "not set aside", in: context)
    }
}
