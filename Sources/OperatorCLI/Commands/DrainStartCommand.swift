import ArgumentParser
import BrokerAPI

struct DrainStartCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "start", abstract: "Close all connections at a rate, and refuse new ones.",
        discussion: """
            With a drain under way, only its rate changes. Choose a rate at which the other \
            brokers can take the clients: each reconnects at once.
            """)

    @Option(
        help: ArgumentHelp(
            "Connections to close in a second, 1 to 100000.", valueName: "number"))
    var rate = DrainStatus.defaultPerSecond

    @Option(
        help: ArgumentHelp(
            "Another broker, which clients of MQTT 5.0 are told.", valueName: "host:port"))
    var serverReference: String?

    @Flag(help: "Wait until no connection is left; ^C leaves the drain under way.")
    var wait = false

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard DrainStatus.rates.contains(rate) else {
            throw ValidationError(
                "--rate is \(rate); it must be \(DrainStatus.rates.lowerBound) to "
                    + "\(DrainStatus.rates.upperBound).")
        }
        if let serverReference, !DrainStatus.isReference(serverReference) {
            throw ValidationError(
                "--server-reference takes 1 to \(DrainStatus.mostReferenceBytes) bytes without "
                    + "control characters.")
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            var answer = try await client.startDrain(
                perSecond: rate, serverReference: serverReference)
            if !output.json { try context.console.print(Self.rendered(answer.model)) }
            while wait, answer.model.state == .draining {
                await context.pause(.seconds(1))
                answer = try await client.drainStatus()
            }
            if wait, answer.model.state == .off {
                throw CommandFailure(
                    .refused,
                    "The drain was stopped before it was done; the broker's log names by whom. "
                        + "Start it again with: hermesctl drain start")
            }
            if output.json {
                try context.console.print(JSONOutput.line(answer.json))
            } else if wait {
                try context.console.print(
                    "Drained: \(DrainCommand.connections(answer.model.closed ?? 0)) closed, none "
                        + "left.\n")
            }
        }
    }

    static func rendered(_ status: DrainStatus) -> String {
        guard status.state == .draining else { return "Drained: no connection is left.\n" }
        let end = status.secondsLeft.map {
            ", which takes about \(Wording.span(seconds: Int64($0)))"
        }
        return "Draining \(DrainCommand.connections(status.connections)) at "
            + "\(status.perSecond ?? 0) a second\(end ?? ""). New ones are refused.\n"
    }
}
