import ArgumentParser
import BrokerAPI

struct ScheduledListCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List messages that are published later, the next one first."
    )

    @Option(help: ArgumentHelp("How many to look at at most.", valueName: "count"))
    var limit: Int = 1_000

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (1...1_000_000).contains(limit) else {
            throw ValidationError("--limit takes 1 to 1000000.")
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let page = try await client.scheduled(limit: limit)
            guard !output.json else {
                try context.console.print(JSONOutput.line(page))
                return
            }
            try context.console.print(
                Self.rendered(
                    page.messages, now: context.now(), width: context.console.outputColumns))
            if page.next != nil {
                context.console.complain(
                    "there are more than these \(page.messages.count). Raise --limit.")
            }
        }
    }

    static func rendered(_ messages: [ScheduledMessage], now: Int64, width: Int?) -> String {
        var table = Table([
            .init(title: "IN", alignment: .right),
            .init(title: "QOS", alignment: .right),
            .init(title: "RETAIN"),
            .init(title: "BYTES", alignment: .right),
            .init(title: "MESSAGE"),
            .init(title: "TOPIC", isFlexible: true),
        ])
        for message in messages.sorted(by: { $0.deliverAtMs < $1.deliverAtMs }) {
            table.append([
                Wording.span(seconds: (message.deliverAtMs - now) / 1_000),
                "\(message.qos)",
                Wording.yesNo(message.retain),
                "\(message.payloadBytes)",
                message.messageID,
                message.topic,
            ])
        }
        return table.rendered(width: width)
    }
}
