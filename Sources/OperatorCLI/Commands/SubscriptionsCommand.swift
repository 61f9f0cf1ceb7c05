import ArgumentParser
import BrokerAPI

struct SubscriptionsCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscriptions", abstract: "List who subscribes to what.")

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Only this client's.", valueName: "client"))
    var client: String?

    @Option(help: ArgumentHelp("Only filters that begin with this.", valueName: "text"))
    var prefix: String?

    @OptionGroup var most: ListLimitOption
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if let client { try ClientArgument.check(client) }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { broker throws(CommandFailure) in
            let page = try await broker.subscriptions(
                of: client, prefix: prefix, limit: most.limit)
            guard !output.json else {
                try context.console.print(JSONOutput.line(page))
                return
            }
            try context.console.print(
                Self.rendered(page.subscriptions, width: context.console.outputColumns))
            if page.next != nil {
                context.console.complain(
                    "there are more than these \(page.subscriptions.count). Raise --limit.")
            }
        }
    }

    static func rendered(_ subscriptions: [ListedSubscription], width: Int?) -> String {
        var table = Table([
            .init(title: "CLIENT", isFlexible: true), .init(title: "USER", isFlexible: true),
            .init(title: "STATE"), .init(title: "QOS", alignment: .right),
            .init(title: "FILTER", isFlexible: true),
        ])
        for one in subscriptions {
            table.append([
                one.clientID, one.userName ?? Wording.absent,
                one.connected ? "connected" : "offline", "\(one.qos)", one.filter,
            ])
        }
        return table.rendered(width: width)
    }
}
