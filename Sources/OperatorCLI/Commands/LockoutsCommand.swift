import Addresses
import ArgumentParser
import BrokerAPI
import PlainText

struct LockoutsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lockouts", abstract: "See and end locks after wrong passwords.",
        subcommands: [LockoutsListCommand.self, LockoutsClearCommand.self])
}

struct LockoutsListCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List users and addresses that are locked out after wrong passwords.")

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer: Answer<LockoutList> = try await client.get(["v1", "lockouts"])
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : Self.rendered(
                        answer.model, now: context.now(), width: context.console.outputColumns))
        }
    }

    static func rendered(_ list: LockoutList, now: Int64, width: Int?) -> String {
        var table = Table([
            .init(title: "ADDRESS"), .init(title: "USER", isFlexible: true),
            .init(title: "WRONG", alignment: .right), .init(title: "ENDS", alignment: .right),
        ])
        for lockout in list.lockouts.sorted(by: { $0.untilMs > $1.untilMs }) {
            table.append([
                lockout.address, lockout.userName ?? "(any)", "\(lockout.wrongPasswords)",
                Wording.relative(lockout.untilMs, now: now),
            ])
        }
        return table.rendered(width: width)
    }
}

struct LockoutsClearCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "End locks, and forget the wrong passwords.")

    @Option(
        help: ArgumentHelp(
            "Only those of this address or network (default: all).", valueName: "address"))
    var address: String?

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if let address, IPNetwork(address) == nil {
            throw ValidationError(
                """
                --address "\(VisibleText.escaped(address))" is neither an IP address nor a network. \
                Write it like 192.0.2.7 or 192.0.2.0/24.
                """)
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer: Answer<LockoutsCleared> = try await client.delete(
                ["v1", "lockouts"], query: address.map { [(name: "address", value: $0)] } ?? [])
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json) : "Ended \(answer.model.cleared) locks.\n")
        }
    }
}
