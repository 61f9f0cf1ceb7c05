import BrokerAPI
import ArgumentParser

struct ClientsListCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List clients, connected or away.")

    @Flag(help: "Only clients that are connected.")
    var connected = false

    @Flag(help: "Only sessions whose client is away.")
    var away = false

    @Option(
        help: ArgumentHelp(
            "Only client identifiers that begin with this.", valueName: "text"))
    var prefix: String?

    @Option(help: ArgumentHelp("Only this user's clients.", valueName: "name"))
    var user: String?

    @Option(help: ArgumentHelp("How many to show at most.", valueName: "count"))
    var limit: Int = 100

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if connected && away {
            throw ValidationError("Give either --connected or --away: no client is both.")
        }
        guard (1...1_000_000).contains(limit) else {
            throw ValidationError("--limit takes 1 to 1000000.")
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let query = ClientQuery(
            connected: connected ? true : away ? false : nil, prefix: prefix, userName: user,
            limit: limit)
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let page = try await client.clients(query)
            guard !output.json else {
                try context.console.print(JSONOutput.line(page))
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
            .init(title: "CLIENT", isFlexible: true),
            .init(title: "USER", isFlexible: true),
            .init(title: "STATE"),
            .init(title: "SINCE", alignment: .right),
            .init(title: "ADDRESS", isFlexible: true),
            .init(title: "MQTT"),
            .init(title: "SESSION"),
            .init(title: "SUBS", alignment: .right),
            .init(title: "IN FLIGHT", alignment: .right),
            .init(title: "QUEUED", alignment: .right),
        ])
        for client in clients {
            table.append([
                client.clientID,
                client.userName ?? Wording.absent,
                client.connected ? "connected" : "away",
                Wording.age(of: client.sinceMs, now: now),
                client.address ?? Wording.absent,
                client.protocolVersion,
                client.cleanSession ? "clean" : "persistent",
                "\(client.subscriptions)",
                "\(client.inFlight)",
                "\(client.queued)",
            ])
        }
        return table.rendered(width: width)
    }
}
