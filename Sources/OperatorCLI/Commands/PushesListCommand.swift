import ArgumentParser
import BrokerAPI

struct PushesListCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List pushes that have not ended, and those of the last day.")

    @Option(help: ArgumentHelp("How many to show at most.", valueName: "count"))
    var limit: Int = 100

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (1...10_000).contains(limit) else {
            throw ValidationError("--limit takes 1 to 10000.")
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let page = try await client.pushes(limit: limit)
            guard !output.json else {
                try context.console.print(JSONOutput.line(page))
                return
            }
            try context.console.print(
                Self.rendered(
                    page.pushes, now: context.now(), width: context.console.outputColumns))
            if page.next != nil {
                context.console.complain(
                    "there are more than these \(page.pushes.count). Raise --limit.")
            }
        }
    }

    static func rendered(_ pushes: [PushStatus], now: Int64, width: Int?) -> String {
        var table = Table([
            .init(title: "STATE"),
            .init(title: "BEGINS", alignment: .right),
            .init(title: "CLIENTS", alignment: .right),
            .init(title: "REACHED", alignment: .right),
            .init(title: "PUSH"),
            .init(title: "TOPIC", isFlexible: true),
        ])
        for push in pushes {
            table.append([
                push.state.rawValue,
                Wording.relative(push.deliverAtMs, now: now),
                push.matched.map { "\($0)" } ?? Wording.absent,
                "\(push.reached)",
                push.pushID,
                push.topic,
            ])
        }
        return table.rendered(width: width)
    }
}
