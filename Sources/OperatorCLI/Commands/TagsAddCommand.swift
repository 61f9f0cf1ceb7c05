import ArgumentParser

struct TagsAddCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Give a client tags.")

    @OptionGroup var options: TagsChangeOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await options.run(in: context) { TagsChange(add: $0, remove: []) }
    }
}
