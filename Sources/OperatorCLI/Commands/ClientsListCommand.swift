import BrokerAPI
import ArgumentParser
import PlainText

struct ClientsListCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List clients, connected or offline.")

    @Flag(help: "Only clients that are connected.")
    var connected = false

    @Flag(help: "Only sessions whose client is offline.")
    var offline = false

    @Option(
        help: ArgumentHelp(
            "Only client identifiers that begin with this.", valueName: "text"))
    var prefix: String?

    @Option(help: ArgumentHelp("Only this user's clients.", valueName: "name"))
    var user: String?

    @Option(
        help: ArgumentHelp(
            "Only clients connected from this address or network (10.1.0.0/16).",
            valueName: "address"))
    var address: String?

    @Option(
        name: .customLong("protocol"),
        help: ArgumentHelp("Only clients of MQTT 3.1, 3.1.1 or 5.0.", valueName: "version"))
    var protocolVersion: String?

    @Option(
        help: ArgumentHelp(
            "Only clients that have been connected or offline for longer, such as 2h.",
            valueName: "time"),
        transform: { try SpanArgument.parse($0, option: "--longer-than", upToDays: 36_500) })
    var longerThan: SpanArgument?

    @Option(
        help: ArgumentHelp(
            "Only clients that came or went within this time, such as 10m.", valueName: "time"),
        transform: { try SpanArgument.parse($0, option: "--within", upToDays: 36_500) })
    var within: SpanArgument?

    @Option(
        help: ArgumentHelp(
            """
            What comes first: client-id, since (the longest connected or offline), queued, \
            queued-bytes, in-flight, dropped or subscriptions (the most).
            """, valueName: "order"),
        transform: ClientOrderArgument.parse)
    var sort: ClientQuery.Order?

    @Option(help: ArgumentHelp("How many to show at most.", valueName: "count"))
    var limit: Int = 100

    @Flag(help: "Print the client identifiers alone, one on each line.")
    var names = false

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if connected && offline {
            throw ValidationError("Give either --connected or --offline: no client is both.")
        }
        if names && output.json { throw ValidationError("Give either --names or --json.") }
        guard ["3.1", "3.1.1", "5.0", nil].contains(protocolVersion) else {
            throw ValidationError("--protocol takes 3.1, 3.1.1 or 5.0.")
        }
        guard (1...1_000_000).contains(limit) else {
            throw ValidationError("--limit takes 1 to 1000000.")
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let query = ClientQuery(
            connected: connected ? true : offline ? false : nil, prefix: prefix, userName: user,
            address: address, protocolVersion: protocolVersion,
            beforeMs: longerThan.map { max(0, context.now() - $0.seconds * 1_000) },
            fromMs: within.map { max(0, context.now() - $0.seconds * 1_000) },
            order: sort ?? .clientID, limit: limit)
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let page = try await client.clients(query)
            guard !output.json else {
                try context.console.print(JSONOutput.line(page))
                return
            }
            guard !names else {
                try context.console.print(
                    page.clients.map { VisibleText.escaped($0.clientID) + "\n" }.joined())
                return
            }
            try context.console.print(
                Self.rendered(
                    page.clients, now: context.now(), width: context.console.outputColumns))
            if page.next != nil {
                context.console.complain(
                    "there are more than these \(page.clients.count). Raise --limit.")
            }
        }
    }

    static func rendered(_ clients: [ClientSummary], now: Int64, width: Int?) -> String {
        var table = Table([
            .init(title: "CLIENT", isFlexible: true, isName: true),
            .init(title: "USER", isFlexible: true, leaves: 4),
            .init(title: "STATE"),
            .init(title: "SINCE", alignment: .right),
            .init(title: "ADDRESS", isFlexible: true),
            .init(title: "MQTT", leaves: 1),
            .init(title: "SESSION", leaves: 2),
            .init(title: "SUBS", alignment: .right, leaves: 5),
            .init(title: "IN FLIGHT", alignment: .right, leaves: 3),
            .init(title: "QUEUED", alignment: .right),
            .init(title: "LOST", alignment: .right),
        ])
        for client in clients {
            table.append([
                client.clientID,
                client.userName ?? Wording.absent,
                client.connected ? "connected" : "offline",
                Wording.age(of: client.sinceMs, now: now),
                client.address ?? Wording.absent,
                client.protocolVersion,
                client.cleanSession ? "clean" : "persistent",
                "\(client.subscriptions)",
                "\(client.inFlight)",
                "\(client.queued)",
                "\(client.dropped)",
            ])
        }
        return table.rendered(width: width)
    }
}
