import HermesClientCore
import HermesTesting
import MQTTCodec

/// A machine with the log that it has written, and what it may do with its connections.
struct WatchedClient {
    /// Small, so that short inputs reach them.
    static let limits: ClientLimits = {
        var limits = ClientLimits()
        (limits.outboxMessages, limits.inFlight) = (8, 3)
        limits.packetBytes = 200
        limits.atMostOnceMessages = 4
        (limits.unacknowledgedMessages, limits.inboundBytes) = (6, 100)
        return limits
    }()

    private struct Random: ClientRandom {
        var source: SplitMix64

        mutating func number(in range: ClosedRange<Int64>) -> Int64 {
            .random(in: range, using: &source)
        }
    }

    private(set) var machine: ClientMachine
    private(set) var connection: ConnectionNumber?
    private(set) var isOpen = false
    /// Packet identifiers of messages that it has sent, the newest first.
    private(set) var identifiers: [PacketIdentifier] = []
    /// The last SUBSCRIBE or UNSUBSCRIBE, and the number of its topic filters.
    private(set) var request: (identifier: PacketIdentifier, filters: Int)?
    private var hasSentConnect = false
    private var log = ClientLog.header

    init(seed: UInt64) { machine = Self.machine(StoredState(), logBytes: 0, seed: seed) }

    private static func machine(
        _ stored: StoredState, logBytes: Int, seed: UInt64
    ) -> ClientMachine {
        var settings = ClientSettings(clientID: Array("client".utf8)) { _, payload in
            MessageFacts(program: payload)
        }
        settings.limits = limits
        settings.heartbeat = .smart
        return ClientMachine(
            settings: settings, stored: stored, logBytes: logBytes,
            random: Random(source: SplitMix64(seed: seed)))
    }

    /// The program is killed and started again.
    mutating func restart(seed: UInt64) throws(CheckFailure) {
        machine = Self.machine(try readLog(), logBytes: log.count, seed: seed)
        forgetConnection()
    }

    /// What a restart would find, which is what the machine has.
    @discardableResult
    func readLog() throws(CheckFailure) -> StoredState {
        guard let recovery = try? ClientLog.recover(log), recovery.droppedBytes == 0,
            recovery.state == machine.stored
        else { throw CheckFailure("the log does not hold what the machine has stored") }
        return recovery.state
    }

    mutating func transportOpened(at moment: Moment) throws(CheckFailure) -> [ClientAction] {
        guard let connection, !isOpen else { return [] }
        isOpen = true
        return try call { $0.transportOpened(connection, at: moment) }
    }

    mutating func transportClosed(
        _ reason: DropReason, at moment: Moment
    ) throws(CheckFailure) -> [ClientAction] {
        guard let connection else { return [] }
        forgetConnection()
        return try call { $0.transportClosed(connection, reason, at: moment) }
    }

    /// Calls the machine, checks and does its actions, and returns them.
    mutating func call(
        _ event: (inout ClientMachine) -> Void
    ) throws(CheckFailure) -> [ClientAction] {
        event(&machine)
        let actions = machine.takeActions()
        for action in actions { try perform(action) }
        return actions
    }

    private mutating func perform(_ action: ClientAction) throws(CheckFailure) {
        switch action {
        case .open(let number):
            try CheckFailure.unless(connection == nil, "a second connection is opened")
            connection = number
        case .write(let number, let bytes):
            try CheckFailure.unless(
                number == connection && isOpen, "\(bytes) for a connection that is not open")
            try note(bytes)
        case .close(let number):
            try CheckFailure.unless(number == connection, "\(number) is closed, which is not open")
            forgetConnection()
        case .store(let frame): log += frame
        case .replaceLog(let file): log = file
        case .state, .event, .requestCredentials, .published, .subscriptionAnswered, .reportDue:
            break
        }
    }

    private mutating func forgetConnection() {
        (connection, isOpen, hasSentConnect) = (nil, false, false)
        (identifiers, request) = ([], nil)
    }

    private mutating func note(_ bytes: [UInt8]) throws(CheckFailure) {
        let packets: [PacketContent]
        do throws(MalformedPacket) {
            packets = try PacketContent.decode(bytes)
        } catch {
            throw CheckFailure("\(bytes) is sent: \(error)")
        }
        for packet in packets {
            if case .connect = packet {
                try CheckFailure.unless(!hasSentConnect, "a second CONNECT")
                hasSentConnect = true
                continue
            }
            try CheckFailure.unless(hasSentConnect, "\(packet) before CONNECT")
            switch packet {
            case .publish(let publish):
                switch publish.delivery {
                case .atMostOnce: break
                case .atLeastOnce(let identifier, _), .exactlyOnce(let identifier, _):
                    identifiers.insert(identifier, at: 0)
                }
            case .subscribe(let identifier, let requests): request = (identifier, requests.count)
            case .unsubscribe(let identifier, let filters): request = (identifier, filters.count)
            case .puback, .pubrec, .pubrel, .pubcomp, .pingreq, .disconnect: break
            case .connect, .connack, .suback, .unsuback, .pingresp:
                throw CheckFailure("\(packet) is no packet of a client")
            }
        }
    }
}

extension MessageFacts {
    /// Facts out of any bytes, over the whole range of sequences; `nil` for a third of them.
    fileprivate init?(program bytes: [UInt8]) {
        var program = ByteProgram(bytes)
        switch program.byte() % 3 {
        case 0: return nil
        case 1: self = .named(program.rest())
        default:
            let channel = [program.byte() & 3]
            let (number, shift) = (UInt64(program.byte()), program.byte())
            let sequence = number << (shift & 63)
            let publishedAt = Int64(program.byte())
            self = .sequenced(
                SequenceNumbers(
                    channel: channel, sequence: shift & 64 == 0 ? sequence : ~sequence,
                    publishedAtMilliseconds: publishedAt,
                    superseded: program.rest().map { sequence &- UInt64($0) }))
        }
    }
}
