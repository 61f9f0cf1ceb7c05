import ArgumentParser

struct Pairs: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Publishers with one subscriber each, as fast as a window allows.")

    @Option(help: "Publishers, and as many subscribers.")
    var pairs = 50

    @OptionGroup var window: WindowOptions
    @OptionGroup var load: LoadOptions
    @OptionGroup var broker: BrokerOptions

    mutating func validate() throws { try checkClients(pairs, "--pairs") }

    func run() throws {
        try runMessages(
            "pairs", load.plan(.pairs(pairs), .window(window.window), broker), load, broker)
    }
}

struct FanOut: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "One publisher to many subscribers of one topic.")

    @Option(help: "Subscribers.")
    var subscribers = 1_000

    @OptionGroup var window: WindowOptions
    @OptionGroup var load: LoadOptions
    @OptionGroup var broker: BrokerOptions

    mutating func validate() throws { try checkClients(subscribers, "--subscribers") }

    func run() throws {
        try runMessages(
            "fan-out",
            load.plan(.fanOut(subscribers: subscribers), .window(window.window), broker), load,
            broker)
    }
}

struct FanIn: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Many publishers to one subscriber.")

    @Option(help: "Publishers.")
    var publishers = 100

    @OptionGroup var window: WindowOptions
    @OptionGroup var load: LoadOptions
    @OptionGroup var broker: BrokerOptions

    mutating func validate() throws { try checkClients(publishers, "--publishers") }

    func run() throws {
        try runMessages(
            "fan-in", load.plan(.fanIn(publishers: publishers), .window(window.window), broker),
            load,
            broker)
    }
}

struct OpenLoop: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Pairs that publish on a schedule, whatever the broker does; shows latency.",
        discussion: """
            Latency counts from the moment when a message was due, so that a broker that stalls pays \
            for all the messages that it held up.
            """)

    @Option(help: "Messages per second, of all publishers together.")
    var rate = 5_000.0

    @Option(help: "Publishers, and as many subscribers.")
    var pairs = 50

    @OptionGroup var load: LoadOptions
    @OptionGroup var broker: BrokerOptions

    mutating func validate() throws {
        try checkClients(pairs, "--pairs")
        guard rate >= 1, rate <= 2_000_000 else {
            throw ValidationError("--rate takes 1 to 2000000 messages per second.")
        }
    }

    func run() throws {
        try runMessages("open-loop", load.plan(.pairs(pairs), .rate(rate), broker), load, broker)
    }
}

/// Runs a plan and prints its figures; with `--strict` any lost or misplaced message is an error.
private func runMessages(
    _ scenario: String, _ plan: LoadPlan, _ load: LoadOptions, _ broker: BrokerOptions
) throws(BenchFailure) {
    try ProcessLimits.check(connections: plan.publishers + plan.subscribers)
    let address = try broker.address()
    let run = MessageRun(
        scenario: scenario, plan: plan, address: address, process: try broker.process(),
        tls: try broker.clientTLS(address), isQuiet: broker.quiet)
    let (report, faults) = try run.run()
    try broker.publish(report)
    if load.strict, faults > 0 {
        throw BenchFailure(
            "\(Text.grouped(faults)) messages or acknowledgements were lost, duplicated, out of "
                + "order, damaged or for nothing.")
    }
}
