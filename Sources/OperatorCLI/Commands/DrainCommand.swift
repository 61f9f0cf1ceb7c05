import ArgumentParser
import BrokerAPI

struct DrainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drain", abstract: "Move the clients of the broker elsewhere.",
        discussion: """
            Before maintenance: connections are closed at a rate, new ones are refused, and \
            /readyz says "draining", so that a load balancer sends clients to other brokers. \
            Sessions and what waits in them stay. A restart ends the drain.
            """,
        subcommands: [DrainStartCommand.self, DrainStatusCommand.self, DrainStopCommand.self])

    /// The state in a line.
    static func summary(_ status: DrainStatus) -> String {
        let closed = "\(connections(status.closed ?? 0)) closed"
        switch status.state {
        case .off: return "off"
        case .draining:
            let end = status.secondsLeft.map {
                ", done in about \(Wording.span(seconds: Int64($0)))"
            }
            return "draining, \(closed), \(status.connections) left\(end ?? "")"
        case .drained: return "drained, \(closed), none left"
        }
    }

    static func connections(_ count: Int) -> String {
        count == 1 ? "1 connection" : "\(count) connections"
    }
}

struct DrainStatusCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show how far the clients have been moved.")

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.drainStatus()
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : Self.rendered(answer.model, now: context.now()))
        }
    }

    static func rendered(_ status: DrainStatus, now: Int64) -> String {
        var list = FieldList()
        list.add("state", status.state.rawValue)
        list.add("connections left", "\(status.connections)")
        if let closed = status.closed { list.add("closed", "\(closed)") }
        if let rate = status.perSecond { list.add("rate", "\(rate) a second") }
        if let start = status.startedAtMs {
            list.add("started", Wording.moment(start, now: now))
        }
        if status.state == .draining, let seconds = status.secondsLeft {
            list.add("done in about", Wording.span(seconds: Int64(seconds)))
        }
        return list.rendered()
    }
}

struct DrainStopCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop", abstract: "Let clients connect again.")

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.endDrain()
            try context.console.print(
                output.json ? JSONOutput.line(answer.json) : Self.rendered(answer.model))
        }
    }

    static func rendered(_ status: DrainStatus) -> String {
        guard let closed = status.closed else { return "The broker was not being drained.\n" }
        return "Clients can connect again; the drain closed "
            + "\(DrainCommand.connections(closed)).\n"
    }
}
