import ArgumentParser
import BrokerAPI

struct TagsShowCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show the tags of a client.")

    @OptionGroup var target: ClientArgument
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            try context.console.print(
                TagsAnswer.text(try await client.tags(of: target.clientID), output))
        }
    }
}

/// The output of the commands that show a client's tags.
enum TagsAnswer {
    static func text(_ answer: Answer<ClientTags>, _ output: OutputOptions) -> String {
        if output.json { return JSONOutput.line(answer.json) }
        var list = FieldList()
        list.add("client", answer.model.clientID)
        let tags = answer.model.tags.joined(separator: ", ")
        list.add("tags", tags.isEmpty ? "none" : tags)
        return list.rendered()
    }
}
