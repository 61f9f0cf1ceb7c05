import ArgumentParser
import BrokerAPI
import PlainText

struct BansListCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the bans in force, the oldest first.")

    @OptionGroup var most: ListLimitOption
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let list = try await client.bans(limit: most.limit)
            try context.console.print(
                output.json
                    ? JSONOutput.line(list)
                    : Self.rendered(
                        list, now: context.now(), width: context.console.outputColumns))
            if !output.json, list.next != nil {
                context.console.complain(
                    "there are more than these \(list.bans.count). Raise --limit.")
            }
        }
    }

    /// The kind and name of what is banned.
    static func target(of ban: BanModel) -> String {
        if let client = ban.clientID { return "client \(client)" }
        if let user = ban.userName { return "user \(user)" }
        return "address \(ban.address ?? Wording.absent)"
    }

    /// How many it refused since the broker's start, and how long ago the last.
    private static func refusals(of ban: BanModel, now: Int64) -> String {
        guard let last = ban.lastRefusedMs else { return "0" }
        return "\(ban.refused), \(Wording.age(of: last, now: now)) ago"
    }

    static func rendered(_ list: BanList, now: Int64, width: Int?) -> String {
        var table = Table([
            .init(title: "BAN"), .init(title: "OF", isFlexible: true),
            .init(title: "SINCE", alignment: .right), .init(title: "ENDS", alignment: .right),
            .init(title: "REFUSED", alignment: .right), .init(title: "BY"),
            .init(title: "REASON", isFlexible: true),
        ])
        for ban in list.bans {
            table.append([
                ban.id, target(of: ban), Wording.age(of: ban.createdMs, now: now) + " ago",
                ban.expiresMs.map { Wording.relative($0, now: now) } ?? "never",
                refusals(of: ban, now: now),
                ban.by.isEmpty ? Wording.absent : ban.by,
                ban.reason.isEmpty ? Wording.absent : ban.reason,
            ])
        }
        return table.rendered(width: width)
    }
}
