import HermesTesting
import MQTTCodec

@testable import HermesClientCore

/// A client's program: the machine, the log that a kill leaves, and the app that takes messages.
struct Phone {
    /// A message that the app has, in this life of the program, and has not acknowledged.
    struct Held {
        var number: UInt64
        var message: SimulatedMessage
    }

    static let filters = ["o/#", "p/#"]

    let identifier: String
    var machine: ClientMachine
    private(set) var log: [UInt8] = []
    /// Counts the starts of the program.
    private(set) var life = 0
    /// The program dies within the action that comes after so many more.
    var killAfter: Int?
    var held: [Held] = []
    /// The app takes up to so long for a message.
    var appMilliseconds: Int64 = 100
    var latency: Int64 = 50
    var hasNetwork = true
    /// The next time at which the machine is called for its deadline.
    var wakesAt: Int64?
    /// The connection that the machine knows, as a place among the world's links.
    var link: Int?

    private let heartbeat: ClientSettings.HeartbeatMode

    init(_ index: Int, _ heartbeat: ClientSettings.HeartbeatMode, seed: UInt64) {
        identifier = "phone\(index)"
        self.heartbeat = heartbeat
        machine = Self.program(identifier, heartbeat, StoredState(), 0, seed)
    }

    private static func program(
        _ identifier: String, _ heartbeat: ClientSettings.HeartbeatMode, _ state: StoredState,
        _ logBytes: Int, _ seed: UInt64
    ) -> ClientMachine {
        var settings = ClientSettings(clientID: Array(identifier.utf8)) { _, payload in
            SimulatedMessage(payload)?.facts
        }
        settings.heartbeat = heartbeat
        return ClientMachine(
            settings: settings, stored: state, logBytes: logBytes,
            random: SeededNumbers(seed: seed))
    }

    mutating func store(_ frame: [UInt8]) { log += log.isEmpty ? ClientLog.header + frame : frame }

    mutating func replaceLog(_ file: [UInt8]) { log = file }

    /// The program starts again with what `log` holds up to a cut in the last write.
    mutating func restart(seed: UInt64) throws {
        let recovery = try ClientLog.recover(log)
        log.removeLast(log.count - recovery.soundBytes)
        machine = Self.program(
            identifier, heartbeat, recovery.state, recovery.soundBytes, seed)
        life += 1
        (held, link, wakesAt, killAfter) = ([], nil, nil, nil)
    }

    /// True when nothing waits to be sent, asked for or acknowledged.
    var isIdle: Bool {
        guard case .connected = machine.phase else { return false }
        return held.isEmpty && machine.stored.outbox.count == 0
            && machine.stored.subscriptions.all.allSatisfy { $0.state.isGranted }
    }

    var isSuspended: Bool {
        if case .suspended = machine.phase { return true }
        return false
    }
}

/// Numbers from a seed, so that a history can be repeated.
struct SeededNumbers: ClientRandom {
    private var source: SplitMix64

    init(seed: UInt64) { source = SplitMix64(seed: seed) }

    mutating func number(in range: ClosedRange<Int64>) -> Int64 {
        .random(in: range, using: &source)
    }
}
