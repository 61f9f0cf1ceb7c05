import ArgumentParser

struct TagsAddCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Give a client tags.")

    @OptionGroup var target: ClientArgument
    @OptionGroup var tags: TagArguments
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.changeTags(
                of: target.clientID, TagsChange(add: tags.tags, remove: []))
            try context.console.print(TagsAnswer.text(answer, output))
        }
    }
}

/// Tags to add or remove.
struct TagArguments: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "1 to 64 bytes without commas and control characters.", valueName: "tag"))
    var tags: [String]
}
