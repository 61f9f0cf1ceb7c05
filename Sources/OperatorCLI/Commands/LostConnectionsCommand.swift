import ArgumentParser
import BrokerAPI

struct LostConnectionsCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "lost-connections",
        abstract: "Show after which silence connections were lost, by cause and network.")

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.lostConnections()
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : Self.rendered(answer.model, width: context.console.outputColumns))
        }
    }

    static func rendered(_ list: LostConnectionList, width: Int?) -> String {
        var table = Table([
            .init(title: "CAUSE"), .init(title: "NETWORK", isFlexible: true),
            .init(title: "SILENCE", alignment: .right), .init(title: "COUNT", alignment: .right),
        ])
        for group in list.lost {
            for silence in group.silences {
                let end = silence.below.map { "to \($0) s" } ?? "s and more"
                table.append([
                    group.cause, group.network ?? Wording.absent, "\(silence.from) \(end)",
                    "\(silence.count)",
                ])
            }
        }
        return table.rendered(width: width)
    }
}
