import ArgumentParser
import MQTTCodec

extension QoS: ExpressibleByArgument {
    public init?(argument: String) {
        guard let value = UInt8(argument) else { return nil }
        self.init(rawValue: value)
    }

    public static var allValueStrings: [String] { allCases.map { String($0.rawValue) } }
}

/// Options of all message scenarios.
struct LoadOptions: ParsableArguments {
    @Option(help: "QoS of publishing and of subscribing.")
    var qos = QoS.atMostOnce

    @Option(help: "Bytes of a payload, at least 24.")
    var payload = 64

    @Option(help: "Seconds to measure.")
    var duration = 5.0

    @Option(help: "Seconds to run before measuring.")
    var warmUp = 1.0

    @Option(
        help: ArgumentHelp(
            "Instead of a duration: each publisher sends exactly so many messages.",
            valueName: "per-publisher"))
    var messages: UInt64?

    @Flag(help: "Subscribers have persistent sessions (clean session 0).")
    var persistent = false

    @Option(
        help: ArgumentHelp(
            "Subscribers answer each PUBLISH of QoS 1 or 2 so much later.",
            valueName: "milliseconds"))
    var acknowledgeAfter: UInt64 = 0

    @Flag(help: "Fail when anything was lost, duplicated, out of order or damaged.")
    var strict = false

    mutating func validate() throws {
        guard (MessageStamp.byteCount...4_194_304).contains(payload) else {
            throw ValidationError("--payload takes 24 to 4194304 bytes.")
        }
        guard duration > 0, duration <= 3_600, warmUp >= 0, warmUp <= 600 else {
            throw ValidationError("--duration takes up to 3600 seconds, --warm-up up to 600.")
        }
        guard (1...1_000_000_000).contains(messages ?? 1) else {
            throw ValidationError("--messages takes 1 to 1000000000.")
        }
        guard acknowledgeAfter <= 60_000 else {
            throw ValidationError("--acknowledge-after takes 0 to 60000 milliseconds.")
        }
    }

    func plan(
        _ shape: LoadPlan.Shape, _ pace: LoadPlan.Pace, _ broker: BrokerOptions
    ) -> LoadPlan {
        LoadPlan(
            shape: shape, pace: pace,
            extent: messages.map { .messages(perPublisher: $0) }
                ?? .time(warmUp: UInt64(warmUp * 1e9), measured: UInt64(duration * 1e9)),
            qos: qos, payloadBytes: payload, subscribersPersist: persistent,
            acknowledgeAfter: acknowledgeAfter * 1_000_000,
            patience: broker.patienceNanoseconds)
    }
}

/// The number of messages that a publisher may have in flight.
struct WindowOptions: ParsableArguments {
    @Option(
        help: """
            Messages that a publisher may have under way: not acknowledged to it yet, or not seen by \
            all its subscribers yet.
            """)
    var window = 16

    mutating func validate() throws {
        guard (1...60_000).contains(window) else {
            throw ValidationError("--window takes 1 to 60000.")
        }
    }
}

/// Throws unless `count` is at least 1 and within the number of ports.
func checkClients(_ count: Int, _ option: String) throws {
    guard (1...32_000).contains(count) else {
        throw ValidationError("\(option) takes 1 to 32000.")
    }
}
