import ArgumentParser
import BrokerAPI
import PlainText

struct TroublesCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "troubles",
        abstract: "Show which clients are in trouble, the newest trouble first.",
        discussion: """
            Troubles are CONNECTs that were refused, topics that the access rules denied, messages \
            that were lost, filters that met a limit, connections that ended by a take-over, a broken \
            rule or an output that was not read, and clients that come and go. Each client has one line, its newest \
            trouble; hermesctl explain tells the rest. The broker remembers the last 8 events of a \
            client (limits.history_bytes) and forgets all when it stops.
            """)

    @Option(
        help: ArgumentHelp(
            "Only refused, denied, lost-messages, filter-refused, disconnected or flapping.",
            valueName: "kind"),
        transform: parse)
    var kind: ClientEvent.Kind?

    @Option(help: ArgumentHelp("How many clients to show at most, 1 to 1000.", valueName: "count"))
    var limit: Int = 50

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (1...PageSize.largest).contains(limit) else {
            throw ValidationError("--limit takes 1 to \(PageSize.largest).")
        }
    }

    private static func parse(_ text: String) throws -> ClientEvent.Kind {
        let kinds = ClientEvent.troubleKinds
        if let kind = kinds.first(where: { name(of: $0) == text }) { return kind }
        let names = kinds.map { name(of: $0) }.joined(separator: ", ")
        throw ValidationError(
            "\"\(VisibleText.escaped(text))\" is no kind. There are \(names).")
    }

    private static func name(of kind: ClientEvent.Kind) -> String {
        kind.rawValue.replacing("_", with: "-")
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            var query = [(name: "limit", value: "\(limit)")]
            if let kind { query.append((name: "kind", value: kind.rawValue)) }
            let answer: Answer<TroubleList> = try await client.get(
                ["v1", "troubles"], query: query)
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : Self.rendered(
                        answer.model, now: context.now(), width: context.console.outputColumns))
        }
    }

    static func rendered(_ list: TroubleList, now: Int64, width: Int?) -> String {
        guard !list.troubles.isEmpty else { return "No such trouble is among the latest.\n" }
        var table = Table(
            [.init(title: "LATELY", alignment: .right), .init(title: "CLIENT")]
                + EventCells.columns)
        for trouble in list.troubles {
            table.append(
                [EventCells.time(trouble.event, now: now), trouble.clientID]
                    + EventCells.cells(trouble.event))
        }
        return table.rendered(width: width)
    }
}
