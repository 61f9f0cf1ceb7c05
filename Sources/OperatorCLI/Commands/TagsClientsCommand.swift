import ArgumentParser
import PlainText

struct TagsClientsCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "clients", abstract: "List the clients with a tag.")

    @Argument(help: ArgumentHelp("The tag.", valueName: "tag"))
    var tag: String

    @OptionGroup var most: ListLimitOption
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if tag.isEmpty { throw ValidationError("The tag is empty.") }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let page = try await client.clients(tagged: tag, limit: most.limit)
            guard !output.json else {
                try context.console.print(JSONOutput.line(page))
                return
            }
            var table = Table([.init(title: "CLIENT", isFlexible: true)])
            for clientID in page.clients.map({ ForeignText($0) }).sorted() {
                table.append([clientID.string])
            }
            try context.console.print(table.rendered(width: context.console.outputColumns))
            if page.next != nil {
                context.console.complain(
                    "there are more than these \(page.clients.count). Raise --limit.")
            }
        }
    }
}
