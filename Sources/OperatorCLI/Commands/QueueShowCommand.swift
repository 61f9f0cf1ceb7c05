import BrokerAPI
import ArgumentParser

struct QueueShowCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show what is in flight to a client and what waits for it, oldest first.")

    @OptionGroup var target: ClientArgument

    @Option(help: ArgumentHelp("How many to show at most.", valueName: "count"))
    var limit: Int = 100

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (1...1_000_000).contains(limit) else {
            throw ValidationError("--limit takes 1 to 1000000.")
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let page = try await client.queue(target.clientID, limit: limit)
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

    static func rendered(_ messages: [QueuedMessage], now: Int64, width: Int?) -> String {
        var table = Table([
            .init(title: "POSITION", alignment: .right),
            .init(title: "STATE"),
            .init(title: "QOS", alignment: .right),
            .init(title: "RETAIN"),
            .init(title: "BYTES", alignment: .right),
            .init(title: "EXPIRES IN", alignment: .right),
            .init(title: "MESSAGE"),
            .init(title: "TOPIC", isFlexible: true),
        ])
        for message in messages {
            table.append([
                "\(message.position)",
                Self.words(message.state),
                "\(message.qos)",
                Wording.yesNo(message.retain),
                "\(message.payloadBytes)",
                message.expiresAtMs.map { Wording.span(seconds: ($0 - now) / 1_000) }
                    ?? Wording.absent,
                message.messageID ?? Wording.absent,
                message.topic ?? Wording.absent,
            ])
        }
        return table.rendered(width: width)
    }

    private static func words(_ state: QueuedMessage.State) -> String {
        switch state {
        case .waiting: "waiting"
        case .inFlight: "in flight"
        case .released: "released"
        }
    }
}
