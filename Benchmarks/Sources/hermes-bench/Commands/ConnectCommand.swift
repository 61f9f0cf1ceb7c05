import ArgumentParser

struct Connect: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Clients that all connect at once, and what that costs and takes.")

    @Option(help: "How many clients.")
    var clients = 5_000

    @Option(help: "How many times, one after another.")
    var rounds = 1

    @Flag(help: "Each client subscribes to a topic of its own.")
    var subscribe = false

    @Flag(help: "Each client publishes one QoS 1 message and waits for its PUBACK.")
    var publish = false

    @Option(help: "Connections being made at a time; all of them unless given.")
    var atOnce: Int?

    @Option(help: "New connections per second; as fast as they go unless given.")
    var rate: Int?

    @OptionGroup var broker: BrokerOptions

    mutating func validate() throws {
        try checkClients(clients, "--clients")
        guard (1...1_000).contains(rounds) else {
            throw ValidationError("--rounds takes 1 to 1000.")
        }
        guard (1...100_000).contains(atOnce ?? 1) else {
            throw ValidationError("--at-once takes 1 to 100000.")
        }
        guard (1...100_000).contains(rate ?? 1) else {
            throw ValidationError("--rate takes 1 to 100000.")
        }
    }

    func run() throws {
        try ProcessLimits.check(connections: clients)
        let address = try broker.address()
        let storm = ConnectStorm(
            settings: ConnectStorm.Settings(
                clients: clients, rounds: rounds, subscribes: subscribe, publishes: publish,
                mostJoining: atOnce ?? clients, perSecond: rate),
            address: address, process: try broker.process(), tls: try broker.clientTLS(address),
            patience: broker.patienceNanoseconds, isQuiet: broker.quiet)
        try broker.publish(try storm.run())
    }
}
