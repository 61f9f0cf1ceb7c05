import ArgumentParser
import BrokerAPI
import PlainText

struct TraceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trace",
        abstract: "Watch live what a client, a topic or an address does.",
        discussion: """
            Each line tells a packet that a client sends or gets, or what the broker does. Passwords \
            never appear, payloads only with --payloads. Others do not notice: beyond --rate lines \
            a second are left out and counted.
            """,
        subcommands: [TraceClientCommand.self, TraceTopicCommand.self, TraceAddressCommand.self])
}

/// How a trace is bounded and shown.
struct TraceOptions: ParsableArguments {
    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("How long, up to 1h, such as 30s (default: 60s).", valueName: "time"),
        transform: { try SpanArgument.parse($0, option: "--for", upToDays: 1) })
    var duration: SpanArgument?

    @Option(help: ArgumentHelp("The most lines in a second.", valueName: "count"))
    var rate: Int64 = TraceRequest.usualRate

    @Flag(help: "Show the beginning of payloads.")
    var payloads = false

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard TraceRequest.rates.contains(rate) else {
            throw ValidationError("--rate takes 1 to \(TraceRequest.rates.upperBound).")
        }
        guard TraceRequest.seconds.contains(duration?.seconds ?? 1) else {
            throw ValidationError("--for takes 1s to 1h.")
        }
    }

    func follow(
        _ name: String, _ value: String, in context: CommandContext
    ) async throws(CommandFailure) {
        let query = [
            (name: name, value: value),
            (name: "seconds", value: "\(duration?.seconds ?? TraceRequest.usualSeconds)"),
            (name: "rate", value: "\(rate)"), (name: "payloads", value: "\(payloads)"),
        ]
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            try await client.trace(query) { line, json throws(CommandFailure) in
                try context.console.print(
                    output.json ? JSONOutput.line(json) : Self.rendered(line) + "\n")
            }
        }
    }

    /// A line for people: time of day, who, what.
    static func rendered(_ line: TraceLine) -> String {
        let (seconds, milliseconds) = line.atMs.flooredDivision(by: 1_000)
        var clock: [UInt8] = []
        CivilTime(unixSeconds: seconds).appendClock(to: &clock)
        clock.append(UInt8(ascii: "."))
        CivilTime.append(milliseconds, 3, to: &clock)
        let time = String(decoding: clock, as: UTF8.self)
        let who = line.clientID.map { $0.isEmpty ? "(no identifier)" : $0 } ?? line.address
        let verb =
            switch line.kind {
            case .received: "sends "
            case .sent: "gets "
            case .event: ""
            case .trace: "-- "
            }
        var text = time + "  " + (who.map { VisibleText.escaped($0, limit: 120) + "  " } ?? "")
        text += verb + VisibleText.escaped(line.text)
        if let payload = line.payload { text += ": " + VisibleText.escaped(payload) }
        return text
    }
}

struct TraceClientCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "client", abstract: "Watch a client, also before it connects.")

    @OptionGroup var target: ClientArgument
    @OptionGroup var trace: TraceOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await trace.follow("client_id", target.clientID, in: context)
    }
}

struct TraceTopicCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "topic",
        abstract: "Watch what is published to a topic or a filter, and what each receiver gets.")

    @Argument(help: ArgumentHelp("A topic name, or a topic filter.", valueName: "filter"))
    var filter: String

    @OptionGroup var trace: TraceOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await trace.follow("topic", filter, in: context)
    }
}

struct TraceAddressCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "address",
        abstract: "Watch all connections from an address or a network.")

    @Argument(
        help: ArgumentHelp("An address, or a network as 10.1.0.0/16.", valueName: "address"))
    var address: String

    @OptionGroup var trace: TraceOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await trace.follow("address", address, in: context)
    }
}
