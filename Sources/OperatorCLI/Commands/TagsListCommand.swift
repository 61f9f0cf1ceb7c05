import ArgumentParser
import BrokerAPI
import PlainText

struct TagsListCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List tags, and how many clients have them.")

    @OptionGroup var most: ListLimitOption
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let page = try await client.tags(limit: most.limit)
            guard !output.json else {
                try context.console.print(JSONOutput.line(page))
                return
            }
            try context.console.print(
                Self.rendered(page.tags, width: context.console.outputColumns))
            if page.next != nil {
                context.console.complain(
                    "there are more than these \(page.tags.count). Raise --limit.")
            }
        }
    }

    static func rendered(_ tags: [TagSummary], width: Int?) -> String {
        var table = Table([
            .init(title: "CLIENTS", alignment: .right), .init(title: "TAG", isFlexible: true),
        ])
        for tag in tags.sorted(by: { ForeignText($0.tag) < ForeignText($1.tag) }) {
            table.append(["\(tag.clients)", tag.tag])
        }
        return table.rendered(width: width)
    }
}
