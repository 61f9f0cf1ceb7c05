import ArgumentParser

/// The arguments of commands that change a client's tags.
struct TagsChangeOptions: ParsableArguments {
    @OptionGroup var target: ClientArgument

    @Argument(
        help: ArgumentHelp(
            "1 to 64 bytes without commas and control characters.", valueName: "tag"))
    var tags: [String]

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    /// Sends the change that `change` makes of the tags, and prints the client's tags.
    func run(
        in context: CommandContext, _ change: ([String]) -> TagsChange
    ) async throws(CommandFailure) {
        let change = change(tags)
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.changeTags(of: target.clientID, change)
            try context.console.print(TagsAnswer.text(answer, output))
        }
    }
}
