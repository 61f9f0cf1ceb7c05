import MQTTCodec

@testable import HermesClientCore

/// Numbers from a seed, so that a run can be repeated.
struct SeededRandom: ClientRandom {
    private var source: SplitMix64

    init(seed: UInt64) { source = SplitMix64(seed: seed) }

    mutating func number(in range: ClosedRange<Int64>) -> Int64 {
        .random(in: range, using: &source)
    }
}

/// Runs a machine by hand: does its storing, keeps all else that it asks for.
struct Driver {
    var machine: ClientMachine
    /// Milliseconds of the monotonic clock.
    var now: Int64 = 1_000
    var log: [UInt8] = []
    /// All actions since the last ``clear()``.
    private(set) var actions: [ClientAction] = []

    init(_ settings: ClientSettings = .phone, log: [UInt8] = [], seed: UInt64 = 1) throws {
        let recovery = try ClientLog.recover(log)
        self.log = Array(log.prefix(recovery.soundBytes))
        machine = ClientMachine(
            settings: settings, stored: recovery.state, logBytes: recovery.soundBytes,
            random: SeededRandom(seed: seed))
    }

    /// A connected client with a granted subscription.
    static func subscribed(to filter: String) throws -> Driver {
        var client = try Driver()
        client.connect()
        try client.subscribe(filter)
        client.answerSubscription()
        return client
    }

    var moment: Moment {
        Moment(
            monotonicMilliseconds: now, unixMilliseconds: 1_800_000_000_000 + now)
    }

    /// The program is killed and started again with what is stored.
    func restarted(_ settings: ClientSettings = .phone) throws -> Driver {
        var next = try Driver(settings, log: log, seed: UInt64(truncatingIfNeeded: now))
        next.now = now
        return next
    }

    mutating func clear() { actions = [] }

    /// Calls the machine and does what it asks for.
    @discardableResult
    mutating func call<Result, Failure: Error>(
        _ event: (inout ClientMachine, Moment) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let result = try event(&machine, moment)
        for action in machine.takeActions() {
            if case .store(let frame) = action {
                if log.isEmpty { log = ClientLog.header }
                log += frame
            }
            if case .replaceLog(let file) = action { log = file }
            actions.append(action)
        }
        return result
    }

    mutating func start() { call { $0.start(at: $1) } }

    /// Lets time pass, with every deadline on the way.
    mutating func pass(_ milliseconds: Int64) {
        let end = now + milliseconds
        while let deadline = machine.nextDeadline, deadline <= end {
            now = max(now, deadline)
            call { $0.timeReached(at: $1) }
        }
        now = end
    }

    /// Feeds packets of the broker into the newest connection.
    mutating func receive(_ packets: [UInt8]...) { receive(bytes: packets.flatMap { $0 }) }

    mutating func receive(bytes: [UInt8]) {
        let number = lastConnection
        call { $0.received(bytes, on: number, at: $1) }
    }

    mutating func transportOpened() {
        let number = lastConnection
        call { $0.transportOpened(number, at: $1) }
    }

    mutating func transportClosed(_ reason: DropReason = .closedByPeer) {
        let number = lastConnection
        call { $0.transportClosed(number, reason, at: $1) }
    }

    /// Brings the machine from where it is to an accepted connection.
    mutating func connect(sessionPresent: Bool = false) {
        if case .stopped? = machine.takenState { start() }
        if let retryDelay { pass(retryDelay) }
        transportOpened()
        receive(Packets.connack(sessionPresent: sessionPresent))
    }

    /// The connection that was opened last.
    var lastConnection: ConnectionNumber { ConnectionNumber(rawValue: machine.nextConnection - 1) }

    /// The bytes of each write since the last ``clear()``.
    var writes: [[UInt8]] {
        actions.compactMap { if case .write(_, let bytes) = $0 { bytes } else { nil } }
    }

    /// The packets that the machine has sent since the last ``clear()``.
    var sent: [Sent] {
        var bytes: [UInt8] = []
        for case .write(_, let part) in actions { bytes += part }
        return Sent.all(in: bytes)
    }

    /// The records of each frame that was stored since the last ``clear()``.
    var storedRecords: [[StoredRecord]] {
        actions.compactMap { action in
            guard case .store(let frame) = action else { return nil }
            return ClientLog.nextFrame(frame, at: 0)?.records
        }
    }

    /// The time until the next try.
    var retryDelay: Int64? {
        guard case .waiting(let until) = machine.phase else { return nil }
        return until - now
    }

    var states: [ClientState] {
        actions.compactMap { if case .state(let state) = $0 { state } else { nil } }
    }

    var events: [ClientEvent] {
        actions.compactMap { if case .event(let event) = $0 { event } else { nil } }
    }

    var published: [UInt64] {
        actions.compactMap { if case .published(let key) = $0 { key } else { nil } }
    }

    var opened: Int { actions.count { if case .open = $0 { true } else { false } } }

    var closed: Int { actions.count { if case .close = $0 { true } else { false } } }

    mutating func takeAll() -> [InboundMessage] {
        var messages: [InboundMessage] = []
        while let message = machine.takeMessage() { messages.append(message) }
        return messages
    }
}

extension ClientMachine {
    /// The state `stopped`, if the machine is in it.
    var takenState: ClientState? {
        if case .stopped(let reason) = phase { return .stopped(reason) }
        return nil
    }

    var openingNumber: ConnectionNumber? {
        if case .opening(let number, _) = phase { return number }
        return nil
    }

    var isConnected: Bool {
        if case .connected = phase { return true }
        return false
    }
}

extension ClientSettings {
    /// A client whose payloads are ``TestPayload``s.
    static var phone: ClientSettings {
        ClientSettings(clientID: Array("phone".utf8)) { _, payload in
            TestPayload(payload)?.facts
        }
    }
}
