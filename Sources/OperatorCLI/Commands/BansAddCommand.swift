import Addresses
import ArgumentParser
import BrokerAPI
import PlainText

struct BansAddCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Shut out a client identifier, a user, or an address.",
        discussion: """
            A further ban of the same takes the place of the first, with its own time and reason. \
            One machine can use a whole IPv6 network: ban its /64.
            """)

    @Option(help: ArgumentHelp("The client identifier.", valueName: "id"))
    var client: String?

    @Option(help: ArgumentHelp("The user name.", valueName: "name"))
    var user: String?

    @Option(
        help: ArgumentHelp(
            "An IP address, or a network such as 192.0.2.0/24 or 2001:db8:1:2::/64.",
            valueName: "address"))
    var address: String?

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp(
            "For how long, such as 30m, 2h or 7d (default: until it is lifted).",
            valueName: "time"),
        transform: { try SpanArgument.parse($0, option: "--for", upToDays: 36_500) })
    var span: SpanArgument?

    @Option(help: ArgumentHelp("Why, for other operators.", valueName: "text"))
    var reason: String?

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard [client, user, address].count(where: { $0 != nil }) == 1 else {
            throw ValidationError("Give one of --client, --user and --address.")
        }
        for (option, name) in [("--client", client), ("--user", user)] where name?.isEmpty == true {
            throw ValidationError("\(option) is empty.")
        }
        if let address, IPNetwork(address) == nil {
            throw ValidationError(
                """
                --address "\(VisibleText.escaped(address))" is neither an IP address nor a network \
                whose bits behind the prefix are 0. Write it like 192.0.2.7 or 192.0.2.0/24.
                """)
        }
        if let span, span.seconds < 1 { throw ValidationError("--for is at least 1s.") }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.ban(
                BanOrder(
                    clientID: self.client, userName: user, address: address,
                    seconds: span?.seconds, reason: reason))
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json) : Self.rendered(answer.model))
        }
    }

    static func rendered(_ answer: BanCreated) -> String {
        let ban = answer.ban
        let whom = VisibleText.escaped(BansListCommand.target(of: ban))
        let end = ban.expiresMs.map {
            "for \(Wording.span(seconds: ($0 - ban.createdMs) / 1_000))"
        }
        let closed =
            answer.disconnected == 1 ? "1 connection" : "\(answer.disconnected) connections"
        return "Banned \(whom) \(end ?? "until it is lifted") (\(ban.id)), and closed \(closed).\n"
    }
}
