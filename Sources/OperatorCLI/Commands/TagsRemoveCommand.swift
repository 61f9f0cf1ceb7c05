import ArgumentParser

struct TagsRemoveCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Take tags from a client.")

    @OptionGroup var options: TagsChangeOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await options.run(in: context) { TagsChange(add: [], remove: $0) }
    }
}
