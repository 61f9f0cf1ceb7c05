import ArgumentParser
import MQTTCodec

struct Offline: ParsableCommand {
    enum Part: String, ExpressibleByArgument, CaseIterable { case fill, drain }

    static let configuration = CommandConfiguration(
        abstract: "Messages that wait for clients who are away: filling, memory, disk, draining.",
        discussion: """
            Clients subscribe and leave, publishers fill their queues, the clients come back. The \
            broker's limit for a queue must be --messages or more. CPU counts until the broker has \
            nothing left to do, so that what it puts off is in it.
            """)

    @Option(help: "Sessions that messages wait for.")
    var sessions = 1_000

    @Option(help: "Further sessions with a subscription, which get no message.")
    var idleSessions = 0

    @Option(help: ArgumentHelp("Messages for each session.", valueName: "per-session"))
    var messages: UInt64 = 1_000

    @Option(help: "Publishers.")
    var publishers = 10

    @Option(help: "Messages that a publisher may have unacknowledged.")
    var window = 100

    @Option(help: "QoS of publishing and of subscribing, 1 or 2.")
    var qos = QoS.atLeastOnce

    @Option(help: "Bytes of a payload, at least 24.")
    var payload = 64

    @Option(help: "Clients that are connected at a time when they come back.")
    var atOnce = 100

    @Option(help: "Folder of the broker's data, to measure what waits there.")
    var dataDirectory: String?

    @Option(help: "Only fill, and leave everything there; or only drain what --run has filled.")
    var only: Part?

    @Option(
        name: .customLong("run"), help: "The run to drain, as the filling one shows it.")
    var filledRun: String?

    @Flag(help: "Fail when anything was lost, duplicated, out of order or damaged.")
    var strict = false

    @OptionGroup var broker: BrokerOptions

    mutating func validate() throws {
        try checkClients(publishers, "--publishers")
        try checkClients(atOnce, "--at-once")
        guard sessions >= 1, idleSessions >= 0, sessions + idleSessions <= RunNames.most else {
            throw ValidationError("There can be 1 to \(RunNames.most) sessions.")
        }
        guard (1...10_000_000).contains(messages) else {
            throw ValidationError("--messages takes 1 to 10000000.")
        }
        guard (1...60_000).contains(window) else {
            throw ValidationError("--window takes 1 to 60000.")
        }
        guard qos != .atMostOnce else { throw ValidationError("--qos takes 1 or 2 here.") }
        guard (MessageStamp.byteCount...4_194_304).contains(payload) else {
            throw ValidationError("--payload takes 24 to 4194304 bytes.")
        }
        guard (only == .drain) == (filledRun != nil) else {
            throw ValidationError("--only drain and --run belong together.")
        }
    }

    func run() throws {
        try ProcessLimits.check(connections: max(publishers, atOnce))
        guard let process = try broker.process() else {
            throw ValidationError("offline measures the broker: name its process with --pid.")
        }
        guard !broker.tls else { throw ValidationError("offline loads plain TCP alone.") }
        let offline = OfflineRun(
            plan: OfflinePlan(
                sessions: sessions, idleSessions: idleSessions, messagesPerSession: messages,
                publishers: min(publishers, sessions), window: window, qos: qos,
                payloadBytes: payload, returningAtOnce: min(atOnce, sessions)),
            part: only.map { $0 == .fill ? .fill : .drain } ?? .both, names: try names(),
            address: try broker.address(), process: process,
            dataDirectory: try directory(), patience: broker.patienceNanoseconds,
            isQuiet: broker.quiet)
        let (report, faults) = try offline.run()
        try broker.publish(report)
        if strict, faults > 0 {
            throw BenchFailure(
                "\(Text.grouped(faults)) messages, acknowledgements or sessions were lost, "
                    + "duplicated, out of order or damaged.")
        }
    }

    private func directory() throws(BenchFailure) -> DataDirectory? {
        guard let dataDirectory else { return nil }
        return try DataDirectory(path: dataDirectory)
    }

    private func names() throws -> RunNames {
        guard let filledRun else { return RunNames() }
        guard let number = UInt32(filledRun, radix: 16), number > 0 else {
            throw ValidationError("--run takes what the filling run has shown, such as 1f2e3d4c.")
        }
        return RunNames(run: number)
    }
}
