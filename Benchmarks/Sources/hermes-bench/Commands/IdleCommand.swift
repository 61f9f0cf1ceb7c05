import ArgumentParser

struct Idle: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Connections that do nothing, and the memory that each costs the broker.",
        discussion: """
            Start the broker for this run: memory that it once took and keeps for later makes what \
            comes now look free.
            """)

    @Option(help: "How many connections to measure at, such as 1000,10000.")
    var connections = "1000,10000"

    @Flag(help: "Each client subscribes to a topic of its own.")
    var subscribe = false

    @Flag(help: "Clients have persistent sessions (clean session 0).")
    var persistent = false

    @Flag(help: "Clients leave again, so that sessions alone are measured; needs --persistent.")
    var away = false

    @Option(help: "User name of every client.")
    var userName: String?

    @Option(help: "Keep alive of the clients in seconds; longer than the run.")
    var keepAlive: UInt16 = 600

    @OptionGroup var broker: BrokerOptions

    private var steps: [Int] {
        connections.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
    }

    mutating func validate() throws {
        guard steps.allSatisfy({ (1...100_000).contains($0) }),
            zip(steps, steps.dropFirst()).allSatisfy({ $0 < $1 })
        else {
            throw ValidationError(
                "--connections takes ascending numbers of 1 to 100000, such as 1000,10000.")
        }
        guard !away || persistent else { throw ValidationError("--away needs --persistent.") }
        guard (userName ?? "").utf8.count <= 1_024 else {
            throw ValidationError("--user-name takes at most 1024 bytes.")
        }
    }

    func run() throws {
        try ProcessLimits.check(connections: steps.last ?? 0)
        guard let process = try broker.process() else {
            throw ValidationError("idle measures the broker's memory: name its process with --pid.")
        }
        let address = try broker.address()
        let run = IdleRun(
            settings: IdleRun.Settings(
                steps: steps, subscribes: subscribe, persists: persistent, leaves: away,
                userName: userName, keepAlive: keepAlive),
            address: address, process: process, tls: try broker.clientTLS(address),
            patience: broker.patienceNanoseconds, isQuiet: broker.quiet)
        try broker.publish(try run.run())
    }
}
