import ArgumentParser
import BrokerAPI
import PlainText

struct TopCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Watch the broker live: its figures, and the clients that stand out.",
        discussion: """
            On a terminal the screen is drawn anew with each look, until Ctrl-C; elsewhere looks \
            follow each other. The last column counts messages that the client lost.
            """)

    @Option(help: ArgumentHelp("Seconds from one look to the next.", valueName: "seconds"))
    var interval: Int = 2

    @Option(
        help: ArgumentHelp(
            """
            What puts a client at the head: queued, queued-bytes, in-flight, dropped, \
            subscriptions, since or client-id.
            """, valueName: "order"),
        transform: ClientOrderArgument.parse)
    var sort: ClientQuery.Order?

    @Option(help: ArgumentHelp("How many clients to show.", valueName: "count"))
    var clients: Int = 10

    @Option(help: ArgumentHelp("End after so many looks.", valueName: "count"))
    var looks: Int?

    @OptionGroup var connection: ConnectionOptions

    func validate() throws {
        guard (1...3_600).contains(interval) else {
            throw ValidationError("--interval takes 1 to 3600 seconds.")
        }
        guard (0...1_000).contains(clients) else {
            throw ValidationError("--clients takes 0 to 1000.")
        }
        guard (1...1_000_000).contains(looks ?? 1) else {
            throw ValidationError("--looks takes 1 to 1000000.")
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let order = sort ?? .queued
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            var former: TopFrame?
            var left = looks ?? .max
            while true {
                let status = try await client.status().model
                var query = ClientQuery(order: order, limit: max(1, clients))
                query.connected = order == .since ? true : nil
                let page = try await client.clients(query)
                let frame = TopFrame(
                    status: status, clients: Array(page.clients.prefix(clients)),
                    atMs: context.now())
                let text = frame.rendered(
                    after: former, sortedBy: order, width: context.console.outputColumns)
                // Home, then clear what is below: less flicker than an empty screen first.
                let isTerminal = context.console.outputColumns != nil
                try context.console.print(isTerminal ? "\u{1B}[H\u{1B}[J" + text : text)
                former = frame
                left -= 1
                guard left > 0 else { return }
                if !isTerminal { try context.console.print("\n") }
                await context.pause(.seconds(interval))
            }
        }
    }
}

/// What `hermesctl top` shows at one look.
struct TopFrame {
    let status: BrokerStatus
    let clients: [ClientSummary]
    /// When it was taken, in milliseconds since 1970.
    let atMs: Int64

    /// The lines of this look; with the one before it, what happened between them by the second.
    func rendered(after former: TopFrame?, sortedBy order: ClientQuery.Order, width: Int?) -> String
    {
        var lines = [
            "Hermes \(status.version), up \(Wording.span(seconds: status.uptimeSeconds)), "
                + "durability \(status.durability), \(readiness)",
            "clients   \(status.connections) connected, \(status.sessions) sessions, "
                + "\(status.subscriptions) subscriptions, \(status.retained) retained",
            "messages  " + rate(\.publishesReceived, former) + " in, "
                + rate(\.publishesSent, former) + " out, \(status.queued) queued ("
                + Wording.bytes(status.queuedBytes) + "), \(status.inFlight) in flight",
            "bytes     " + byteRate(\.bytesReceived, former) + " in, "
                + byteRate(\.bytesSent, former) + " out" + memory,
        ]
        if let store = status.store {
            lines.append(
                "store     " + rate(store.commits, former?.status.store?.commits, former)
                    + " commits, longest "
                    + Wording.microseconds(store.longestCommitMicroseconds)
                    + ", \(Wording.bytes(store.freeBytes)) free")
        }
        lines.append("dropped   " + growth(\.dropped, former))
        lines.append("limits    " + growth(\.limitsReached, former))
        let head = lines.map { cut($0, to: width) + "\n" }.joined()
        guard !clients.isEmpty else { return head }
        return head + "\n" + table(sortedBy: order, width: width)
    }

    private var readiness: String {
        if let drain = status.drain {
            return "NOT READY: \(drain.state.rawValue), \(drain.connections) connections left"
        }
        guard let store = status.store else { return "stores nothing" }
        return store.notReadyReason.map { "NOT READY: \(VisibleText.escaped($0))" } ?? "ready"
    }

    private var memory: String {
        guard let memory = status.memory else { return "" }
        let pressure =
            memory.pressure.hasBytes(of: "none") ? "" : ", SHORT: \(memory.pressure) are cut back"
        let limit = memory.limitBytes.map { " of \(Wording.bytes($0))" } ?? ""
        return ", memory \(Wording.bytes(memory.usedBytes))\(limit)\(pressure)"
    }

    /// The share of a second in which so many things happened; `nil` without a former look.
    private func seconds(since former: TopFrame?) -> Double? {
        guard let former, atMs > former.atMs,
            status.startedAtMs == former.status.startedAtMs
        else { return nil }
        return Double(atMs - former.atMs) / 1_000
    }

    private func rate(_ count: UInt64, _ before: UInt64?, _ former: TopFrame?) -> String {
        guard let before, count >= before, let seconds = seconds(since: former) else {
            return "\(count)"
        }
        return "\(Int((Double(count - before) / seconds).rounded()))/s"
    }

    private func rate(_ figure: KeyPath<BrokerStatus, UInt64>, _ former: TopFrame?) -> String {
        rate(status[keyPath: figure], former?.status[keyPath: figure], former)
    }

    private func byteRate(_ figure: KeyPath<BrokerStatus, UInt64>, _ former: TopFrame?) -> String {
        let count = status[keyPath: figure]
        guard let former, let seconds = seconds(since: former),
            count >= former.status[keyPath: figure]
        else { return Wording.bytes(count) }
        return Wording.bytes(Int(Double(count - former.status[keyPath: figure]) / seconds)) + "/s"
    }

    /// Counts by reason since the start, with their growth since the former look.
    private func growth(
        _ figure: KeyPath<BrokerStatus, [String: UInt64]>, _ former: TopFrame?
    ) -> String {
        let counts = status[keyPath: figure].filter { $0.value > 0 }
            .sorted { ForeignText($0.key) < ForeignText($1.key) }
        guard !counts.isEmpty else { return "none" }
        let before = seconds(since: former) == nil ? nil : former?.status[keyPath: figure]
        return counts.map { name, count in
            let new = before.map { count - min(count, $0[name] ?? 0) } ?? 0
            return VisibleText.escaped(name) + " \(count)" + (new > 0 ? " (+\(new))" : "")
        }.joined(separator: ", ")
    }

    private func table(sortedBy order: ClientQuery.Order, width: Int?) -> String {
        var table = Table([
            .init(title: "CLIENT", isFlexible: true, isName: true),
            .init(title: "USER", isFlexible: true),
            .init(title: "STATE"), .init(title: "SINCE", alignment: .right),
            .init(title: "ADDRESS", isFlexible: true), .init(title: "SUBS", alignment: .right),
            .init(title: "IN FLIGHT", alignment: .right),
            .init(title: "QUEUED", alignment: .right), .init(title: "BYTES", alignment: .right),
            .init(title: "LOST", alignment: .right),
        ])
        for client in clients {
            table.append([
                client.clientID, client.userName ?? Wording.absent,
                client.connected ? "connected" : "offline",
                Wording.age(of: client.sinceMs, now: atMs), client.address ?? Wording.absent,
                "\(client.subscriptions)", "\(client.inFlight)", "\(client.queued)",
                Wording.bytes(client.queuedBytes), "\(client.dropped)",
            ])
        }
        return table.rendered(width: width)
    }

    private func cut(_ line: String, to width: Int?) -> String {
        width.map { DisplayWidth.cut(line, to: $0) } ?? line
    }
}
