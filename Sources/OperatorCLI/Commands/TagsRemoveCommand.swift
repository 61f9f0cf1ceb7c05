import ArgumentParser

struct TagsRemoveCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Take tags from a client.")

    @OptionGroup var target: ClientArgument
    @OptionGroup var tags: TagArguments
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.changeTags(
                of: target.clientID, TagsChange(add: [], remove: tags.tags))
            try context.console.print(TagsAnswer.text(answer, output))
        }
    }
}
