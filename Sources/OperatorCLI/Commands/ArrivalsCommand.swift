import ArgumentParser
import BrokerAPI
import PlainText

struct ArrivalsCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "arrivals",
        abstract: "Show what reached the clients and what was lost, as they report it.")

    @Option(help: ArgumentHelp("Show the report of this client alone.", valueName: "id"))
    var client: String?

    @Flag(help: "Show only clients that lost messages.")
    var losses = false

    @OptionGroup var most: ListLimitOption
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if client?.isEmpty == true { throw ValidationError("The client identifier is empty.") }
        if client != nil, losses {
            throw ValidationError("--client and --losses exclude each other.")
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { broker throws(CommandFailure) in
            let page =
                if let client {
                    try await broker.arrivals(of: client)
                } else {
                    try await broker.arrivals(withLosses: losses, limit: most.limit)
                }
            try context.console.print(
                output.json
                    ? JSONOutput.line(page)
                    : Self.rendered(
                        page, now: context.now(), width: context.console.outputColumns))
            if page.next != nil {
                context.console.complain(
                    "there are more than these \(page.clients.count). Raise --limit.")
            }
            if let client, page.clients.isEmpty {
                throw CommandFailure(
                    .refused,
                    "there is no report of \"\(client.visible())\". It comes within an hour, "
                        + "unless the client sends none, or the access rules deny it.")
            }
        }
    }

    /// The sums, then the clients: those that lost the most first.
    static func rendered(_ page: ArrivalPage, now: Int64, width: Int?) -> String {
        let (total, counts) = (page.total, page.total.counts)
        var list = FieldList()
        list.add("clients with reports", "\(total.clients)")
        list.add("arrival rate", Wording.share(total.arrivalRate))
        list.add("messages received", "\(counts.received)")
        list.add("duplicates", "\(counts.duplicates)")
        list.add("losses", "\(counts.losses)")
        list.add("QoS 0 dropped by apps", "\(counts.droppedAtMostOnce)")
        list.add("messages published", "\(counts.published)")
        list.add("connects", "\(counts.connects)")
        list.add("lost connections", "\(counts.lostConnections)")
        list.add("lost sessions", "\(counts.lostSessions)")
        list.add("reports", Wording.counts(total.reports))
        guard !page.clients.isEmpty else { return list.rendered() }
        var table = Table([
            .init(title: "CLIENT", isFlexible: true), .init(title: "ARRIVED", alignment: .right),
            .init(title: "RECEIVED", alignment: .right), .init(title: "TWICE", alignment: .right),
            .init(title: "LOST", alignment: .right), .init(title: "CONNECTS", alignment: .right),
            .init(title: "HEARTBEAT", alignment: .right), .init(title: "NETWORK"),
            .init(title: "REPORTED", alignment: .right),
        ])
        let clients = page.clients.sorted {
            ($1.counts.losses, ForeignText($0.clientID))
                < ($0.counts.losses, ForeignText($1.clientID))
        }
        for client in clients {
            table.append([
                client.clientID, Wording.share(client.arrivalRate), "\(client.counts.received)",
                "\(client.counts.duplicates)", "\(client.counts.losses)",
                "\(client.counts.connects)",
                client.heartbeatSeconds.map { "\($0) s" } ?? Wording.absent,
                client.network ?? Wording.absent,
                Wording.age(of: client.reportedAtMs, now: now) + " ago",
            ])
        }
        return list.rendered() + "\n" + table.rendered(width: width)
    }
}
