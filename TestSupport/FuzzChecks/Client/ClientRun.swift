import HermesClientCore
import HermesTesting
import MQTTCodec

/// Two equal clients of a broker: one gets its bytes at once, the other in pieces.
struct ClientRun {
    /// A machine comes to rest after so many deadlines at one time.
    private static let mostDeadlines = 16

    private var whole: WatchedClient
    private var inPieces: WatchedClient
    private var pieces: SplitMix64
    private var now: Int64 = 0
    /// What the broker has sent and the clients have not received.
    private var pending: [UInt8] = []
    /// What came on this connection behind the last whole packet.
    private var begun: [UInt8] = []
    /// Messages of QoS 1 and 2 that the app has and has not acknowledged, with their sizes.
    private var held: [(number: UInt64, size: Int)] = []

    init(seed: UInt64) {
        (whole, inPieces) = (WatchedClient(seed: seed), WatchedClient(seed: seed))
        pieces = SplitMix64(seed: seed)
    }

    mutating func perform(_ step: ClientStep) throws(CheckFailure) {
        if let bytes = packet(step) {
            pending += bytes
            return
        }
        try deliver()
        switch step {
        case .connects(let sessionPresent): try connect(sessionPresent)
        case .opened:
            if !whole.isOpen { begun = [] }
            let actions = try whole.transportOpened(at: moment)
            let others = try inPieces.transportOpened(at: moment)
            try compare(actions, others)
        case .closed(let reason):
            let actions = try whole.transportClosed(reason, at: moment)
            let others = try inPieces.transportClosed(reason, at: moment)
            try compare(actions, others)
        case .passes(let milliseconds): now += milliseconds
        case .takes(let place): try take(acknowledging: place)
        case .publishes(let qos, let count):
            for _ in 0..<count {
                try call { machine, moment in
                    _ = try? machine.publish(
                        topic: Array("p".utf8), payload: [7],
                        qos: QoS(rawValue: qos) ?? .exactlyOnce, at: moment)
                }
            }
        case .subscribes(let filter, let qos):
            try call { machine, moment in
                try? machine.subscribe(
                    Array(filter.utf8), qos: QoS(rawValue: qos) ?? .exactlyOnce, at: moment)
            }
        case .unsubscribes(let filter): try call { $0.unsubscribe(Array(filter.utf8), at: $1) }
        case .background: try call { $0.enteredBackground(at: $1) }
        case .foreground: try call { $0.enteredForeground(at: $1) }
        case .wakes: try call { $0.wokenByPush(at: $1) }
        case .network(let label): try call { $0.networkChanged(to: label, at: $1) }
        case .starts: try call { $0.start(at: $1) }
        case .stops: try call { $0.stop(at: $1) }
        case .credentials(let areKnown):
            let credentials = ClientCredentials(userName: [0x75], password: [])
            try call { $0.credentialsProvided(areKnown ? credentials : nil, at: $1) }
        case .killed:
            try whole.restart(seed: UInt64(now))
            try inPieces.restart(seed: UInt64(now))
            held = []
        case .raw, .publish, .answer, .suback, .unsuback, .connack, .pingresp: break
        }
        try reachDeadlines()
    }

    mutating func finish() throws(CheckFailure) {
        try deliver()
        try take(acknowledging: 0)
        try whole.readLog()
        try inPieces.readLog()
    }

    // MARK: The broker

    /// The bytes of a step of the broker; `nil` for another step.
    private func packet(_ step: ClientStep) -> [UInt8]? {
        switch step {
        case .raw(let bytes): return bytes
        case .publish(let flags, let identifier, let payload):
            let name: [UInt8] = flags & 0b110 == 0 ? [] : [0, identifier]
            let body = [0, 1, 0x74] + name + payload
            return [0x30 | flags, UInt8(body.count)] + body
        case .answer(let answer, let place):
            let bytes = numbered(identifier(at: place))
            switch answer {
            case .puback: return [0x40, 2] + bytes
            case .pubrec: return [0x50, 2] + bytes
            case .pubrel: return [0x62, 2, 0, UInt8(place)]
            case .pubcomp: return [0x70, 2] + bytes
            }
        case .suback(let code, let isLong):
            let count = (whole.request?.filters ?? 1) + (isLong ? 1 : 0)
            return [0x90, UInt8(2 + count)] + numbered(whole.request?.identifier)
                + [UInt8](repeating: code, count: count)
        case .unsuback: return [0xB0, 2] + numbered(whole.request?.identifier)
        case .connack(let sessionPresent, let code): return [0x20, 2, sessionPresent ? 1 : 0, code]
        case .pingresp: return [0xD0, 0]
        default: return nil
        }
    }

    private func identifier(at place: Int) -> PacketIdentifier? {
        whole.identifiers.indices.contains(place) ? whole.identifiers[place] : nil
    }

    private func numbered(_ identifier: PacketIdentifier?) -> [UInt8] {
        let number = identifier?.rawValue ?? 1
        return [UInt8(number >> 8), UInt8(number & 0xFF)]
    }

    /// Hands over what the broker has sent.
    private mutating func deliver() throws(CheckFailure) {
        guard !pending.isEmpty else { return }
        let bytes = pending
        pending = []
        guard let connection = whole.connection, whole.isOpen else { return }
        let moment = moment
        let actions = try whole.call { $0.received(bytes, on: connection, at: moment) }
        var others: [ClientAction] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces.number(in: 1...8)))
            rest = rest.dropFirst(piece.count)
            others += try inPieces.call { $0.received(piece, on: connection, at: moment) }
        }
        try compare(actions, others)
        try checkBeginning(bytes, on: connection)
    }

    /// A connection with bytes that can become no packet has ended; so less than the largest packet
    /// is kept of one that is open.
    private mutating func checkBeginning(
        _ bytes: [UInt8], on connection: ConnectionNumber
    ) throws(CheckFailure) {
        guard whole.connection == connection else { return }
        begun += bytes
        do throws(MalformedPacket) {
            var offset = 0
            while case .frame(let frame) = try PacketDecoder.frame(
                begun.span.bytes, at: offset,
                maximumSize: WatchedClient.limits.packetBytes)
            {
                offset = frame.packet.end
            }
            begun.removeFirst(offset)
        } catch {
            throw CheckFailure("a connection goes on behind \(begun): \(error)")
        }
        try CheckFailure.unless(
            begun.count < WatchedClient.limits.packetBytes, "\(begun.count) bytes are kept")
    }

    /// Leads both clients to a connection that the broker accepts, unless they have one.
    private mutating func connect(_ sessionPresent: Bool) throws(CheckFailure) {
        try call { $0.start(at: $1) }
        if whole.connection == nil { try call { $0.enteredForeground(at: $1) } }
        if whole.connection == nil, let deadline = whole.machine.nextDeadline {
            now = max(now, deadline)
            try reachDeadlines()
        }
        guard !whole.isOpen else { return }
        try perform(.opened)
        try perform(.connack(sessionPresent: sessionPresent, code: 0))
    }

    // MARK: The app

    private mutating func take(acknowledging place: Int) throws(CheckFailure) {
        let limits = WatchedClient.limits
        var taken: [InboundMessage] = []
        var others: [InboundMessage] = []
        try call { machine, _ in
            var messages: [InboundMessage] = []
            while let message = machine.takeMessage() { messages.append(message) }
            (others, taken) = (taken, messages)
        }
        try CheckFailure.unless(taken == others, "\(others) and in pieces \(taken)")
        for message in taken where message.qos != .atMostOnce {
            held.append((message.number, message.topic.count + message.payload.count))
        }
        let kept = taken.filter { $0.qos == .atMostOnce }
        try CheckFailure.unless(
            kept.count <= limits.atMostOnceMessages && held.count <= limits.unacknowledgedMessages,
            "\(kept.count) messages of QoS 0 and \(held.count) others were kept")
        let bytes = (kept.map { $0.topic.count + $0.payload.count } + held.map(\.size)).reduce(0, +)
        try CheckFailure.unless(bytes <= limits.inboundBytes, "\(bytes) bytes were kept")
        guard held.indices.contains(place) else { return }
        let number = held.remove(at: place).number
        try call { $0.acknowledge(number, at: $1) }
    }

    // MARK: Both clients

    private var moment: Moment {
        Moment(monotonicMilliseconds: now, unixMilliseconds: 1_800_000_000_000 + now)
    }

    private mutating func call(
        _ event: (inout ClientMachine, Moment) -> Void
    ) throws(CheckFailure) {
        let moment = moment
        let actions = try whole.call { event(&$0, moment) }
        let others = try inPieces.call { event(&$0, moment) }
        try compare(actions, others)
    }

    private mutating func reachDeadlines() throws(CheckFailure) {
        for _ in 0..<Self.mostDeadlines {
            guard let deadline = whole.machine.nextDeadline, deadline <= now else { return }
            try call { $0.timeReached(at: $1) }
        }
        throw CheckFailure("the client does not come to rest")
    }

    private func compare(
        _ actions: [ClientAction], _ others: [ClientAction]
    ) throws(CheckFailure) {
        let (expected, found) = (Self.merged(actions), Self.merged(others))
        try CheckFailure.unless(expected == found, "\(expected), and in pieces \(found)")
        try CheckFailure.unless(
            whole.machine.stored == inPieces.machine.stored
                && whole.machine.nextDeadline == inPieces.machine.nextDeadline,
            "the clients differ after \(expected)")
    }

    /// Without the bounds between writes, and between frames of the log, that follow each other; the
    /// time at which the log is compacted follows from them.
    private static func merged(_ actions: [ClientAction]) -> [ClientAction] {
        var merged: [ClientAction] = []
        for action in actions {
            switch (merged.last, action) {
            case (.write(let number, let earlier)?, .write(let next, let bytes))
            where next == number:
                merged[merged.count - 1] = .write(number, earlier + bytes)
            case (.store(let earlier)?, .store(let frame)):
                merged[merged.count - 1] = .store(frame: earlier + records(frame))
            case (_, .store(let frame)): merged.append(.store(frame: records(frame)))
            case (_, .replaceLog): break
            default: merged.append(action)
            }
        }
        return merged
    }

    /// A frame without its length and checksum.
    private static func records(_ frame: [UInt8]) -> [UInt8] { Array(frame.dropFirst(8)) }
}
