import HermesTesting
import MQTTCodec

/// One step of a program: an action of a peer, the disk, the clock or the operator.
enum ShardStep {
    struct Will {
        var topic: [UInt8]
        var qos: QoS
        var retain: Bool
    }

    struct Connect {
        var version: MQTTCodec.Connect.Version
        var cleanSession: Bool
        var keepAlive: UInt16
        var clientID: [UInt8]
        var userName: [UInt8]?
        var will: Will?
    }

    struct Publish {
        var topic: [UInt8]
        var qos: QoS
        var retain: Bool
        var isDuplicate: Bool
        var identifier: PacketIdentifier
        /// Payload bytes after the serial number; `nil` for an empty payload.
        var payloadSize: Int?
    }

    /// A late event of a closed connection, which must have no effect.
    enum Stale: Int {
        case lost, drained, receive, authenticated
    }

    case open(slot: Int)
    /// Opens the slot first if it is free.
    case connect(slot: Int, Connect)
    case publish(slot: Int, Publish)
    /// Acknowledges PUBLISH and PUBREL correctly, from the oldest or the newest.
    case respond(slot: Int, count: Int, fromNewest: Bool)
    /// An acknowledgement that may match nothing.
    case acknowledge(slot: Int, PacketContent)
    case subscribe(slot: Int, PacketIdentifier, [PacketContent.Request])
    case unsubscribe(slot: Int, PacketIdentifier, [[UInt8]])
    case ping(slot: Int)
    case disconnect(slot: Int)
    case raw(slot: Int, [UInt8])
    /// Sends only `count` bytes of the next packet; the rest precedes the one after it.
    case fragment(slot: Int, count: Int)
    case lose(slot: Int)
    /// The peer reads at most `limit` further bytes; `nil` is all.
    case read(slot: Int, limit: Int?)
    case advance(milliseconds: UInt64)
    /// A commit completes, with all before it if commits complete in order.
    case complete(choice: Int)
    case completeAll
    /// Reads of queues wait until this is turned off.
    case holdReads(Bool)
    /// The store rejects new messages, as on a full disk, or accepts them again.
    case refuse(Bool)
    case publishByOperator(Publish)
    case query(choice: Int)
    case kick(clientID: [UInt8])
    case stale(choice: Int, Stale)
    /// One client's password check ends.
    case verdict(choice: Int, Connack.ReturnCode?)
    /// The next `count` steps belong to this turn.
    case batch(count: Int)
    case shutDown

    /// Decodes the next step: the opcode's upper two bits are the slot, the rest is the action.
    init(_ program: inout ByteProgram) {
        let opcode = program.byte()
        let slot = Int(opcode >> 6)
        switch opcode & 0x3F {
        case 0...5: self = .connect(slot: slot, Connect(&program))
        case 6...15: self = .publish(slot: slot, Publish(&program))
        case 16...23:
            var operand = OperandBits(program.byte())
            self = .respond(
                slot: slot, count: 1 + operand.take(4), fromNewest: operand.flag())
        case 24, 25: self = .acknowledge(slot: slot, Self.acknowledgement(&program))
        case 26...31:
            var operand = OperandBits(program.byte())
            let identifier = Self.identifier(operand.take(3))
            let requests = (0...operand.take(2)).map { _ in Self.request(program.byte()) }
            self = .subscribe(slot: slot, identifier, requests)
        case 32, 33:
            var operand = OperandBits(program.byte())
            let identifier = Self.identifier(operand.take(3))
            let filters = (0...operand.take(1)).map { _ in Self.request(program.byte()).filter }
            self = .unsubscribe(slot: slot, identifier, filters)
        case 34: self = .ping(slot: slot)
        case 35, 36: self = .disconnect(slot: slot)
        case 37, 38: self = .raw(slot: slot, program.bytes(Int(program.byte() & 0x3F)))
        case 39: self = .fragment(slot: slot, count: Int(program.byte() & 0x1F))
        case 40...42: self = .lose(slot: slot)
        case 43, 44:
            let limit = Int(program.byte())
            self = .read(slot: slot, limit: limit < 128 ? limit * 4 : nil)
        // 1 ms to some 12 days.
        case 45...47: self = .advance(milliseconds: 1 << UInt64(program.byte() % 31))
        case 48...50: self = .complete(choice: Int(program.byte()))
        case 51...53: self = .completeAll
        case 54, 55: self = .publishByOperator(Publish(&program))
        case 56: self = .query(choice: slot)
        case 57: self = .kick(clientID: ShardVocabulary.clients[slot])
        case 58: self = .stale(choice: Int(program.byte()), Stale(rawValue: slot) ?? .lost)
        case 59, 60: self = .verdict(choice: Int(program.byte()), Self.verdict(slot))
        case 61: self = .batch(count: slot + 1)
        case 62: self = .open(slot: slot)
        default:
            switch program.byte() {
            case 0..<0x40: self = .holdReads(true)
            case 0x40..<0x80: self = .holdReads(false)
            case 0x80..<0xA0: self = .refuse(true)
            case 0xA0..<0xC0: self = .refuse(false)
            // Rare, because it ends all connections.
            case 0xFF: self = .shutDown
            default: self = .completeAll
            }
        }
    }

    private static func identifier(_ value: Int) -> PacketIdentifier {
        PacketIdentifier(integerLiteral: UInt16(value + 1))
    }

    private static func request(_ value: UInt8) -> PacketContent.Request {
        var operand = OperandBits(value)
        let filter = operand.pick(ShardVocabulary.filters)
        var request = PacketContent.Request("", qos(operand.take(2)))
        request.filter = filter
        return request
    }

    private static func qos(_ value: Int) -> QoS { QoS.allCases[value % QoS.allCases.count] }

    private static func verdict(_ slot: Int) -> Connack.ReturnCode? {
        slot == 0 ? .badUserNameOrPassword : nil
    }

    private static func acknowledgement(_ program: inout ByteProgram) -> PacketContent {
        var operand = OperandBits(program.byte())
        let kind = operand.take(2)
        let identifier = Self.identifier(operand.take(3))
        return switch kind {
        case 0: .puback(identifier)
        case 1: .pubrec(identifier)
        case 2: .pubrel(identifier)
        default: .pubcomp(identifier)
        }
    }
}

extension ShardStep.Connect {
    fileprivate init(_ program: inout ByteProgram) {
        var first = OperandBits(program.byte())
        clientID = first.pick(ShardVocabulary.clients)
        cleanSession = first.flag()
        keepAlive = first.pick(ShardVocabulary.keepAlives)
        let hasWill = first.flag()
        userName = first.pick(ShardVocabulary.users)
        var second = OperandBits(program.byte())
        version = second.flag() ? .v3_1 : .v3_1_1
        guard hasWill else { return }
        will = ShardStep.Will(
            topic: second.pick(ShardVocabulary.topics),
            qos: QoS.allCases[second.take(2) % QoS.allCases.count], retain: second.flag())
    }
}

extension ShardStep.Publish {
    fileprivate init(_ program: inout ByteProgram) {
        var first = OperandBits(program.byte())
        topic = first.pick(ShardVocabulary.topics)
        qos = QoS.allCases[first.take(2) % QoS.allCases.count]
        retain = first.flag()
        isDuplicate = first.flag() && qos != .atMostOnce
        let hasNoPayload = first.flag()
        var second = OperandBits(program.byte())
        identifier = PacketIdentifier(integerLiteral: UInt16(second.take(3) + 1))
        let size = second.pick(ShardVocabulary.payloadSizes)
        payloadSize = hasNoPayload ? nil : size
    }
}
