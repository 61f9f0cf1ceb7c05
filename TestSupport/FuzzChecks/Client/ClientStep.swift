import HermesClientCore

/// One step of a program: an action of the broker, the network, the clock or the app.
enum ClientStep {
    enum Answer {
        case puback, pubrec, pubcomp, pubrel
    }

    /// Any bytes of the broker.
    case raw([UInt8])
    /// The lower bits of the first byte as they are, QoS 3 and all.
    case publish(flags: UInt8, identifier: UInt8, payload: [UInt8])
    /// For the packet identifier at `place` of those that the client has used last.
    case answer(Answer, place: Int)
    /// With one code too many if `isLong`.
    case suback(code: UInt8, isLong: Bool)
    case unsuback
    case connack(sessionPresent: Bool, code: UInt8)
    case pingresp

    /// All that leads to a connection, whatever the client waits for.
    case connects(sessionPresent: Bool)
    case opened
    case closed(DropReason)
    case passes(milliseconds: Int64)
    /// The app takes its messages, and acknowledges the one at `place` of those that it has.
    case takes(place: Int)
    case publishes(qos: UInt8, count: Int)
    case subscribes(filter: String, qos: UInt8)
    case unsubscribes(filter: String)
    case background
    case foreground
    case wakes
    case network(label: [UInt8]?)
    case starts
    case stops
    case killed
    case credentials(areKnown: Bool)

    init(_ program: inout ByteProgram) {
        var operand = OperandBits(program.byte())
        if operand.flag() {
            self.init(event: &operand)
        } else {
            self.init(packet: &operand, &program)
        }
    }

    private init(packet operand: inout OperandBits, _ program: inout ByteProgram) {
        switch operand.take(3) {
        case 0: self = .raw(program.bytes(Int(program.byte() & 31)))
        case 1, 2, 3:
            let flags = UInt8(operand.take(4))
            var more = OperandBits(program.byte())
            let identifier = UInt8(more.take(3))
            self = .publish(
                flags: flags, identifier: identifier, payload: program.bytes(more.take(5)))
        case 4:
            let answer: Answer = operand.pick([.puback, .pubrec, .pubcomp, .pubrel])
            self = .answer(answer, place: operand.take(2))
        case 5:
            let isUnsuback = operand.flag()
            let code: UInt8 = operand.pick([0, 1, 2, 0x80])
            self = isUnsuback ? .unsuback : .suback(code: code, isLong: operand.flag())
        case 6:
            let sessionPresent = operand.flag()
            self = .connack(sessionPresent: sessionPresent, code: UInt8(operand.take(3)))
        default: self = .pingresp
        }
    }

    private static let spans: [Int64] = [
        1, 100, 1_000, 3_000, 5_000, 10_000, 15_000, 25_000, 30_000, 60_000, 120_000, 125_000,
        300_000, 600_000, 3_600_000, 8 * 86_400_000,
    ]

    private init(event operand: inout OperandBits) {
        switch operand.take(3) {
        case 0: self = .connects(sessionPresent: operand.flag())
        case 1:
            let reasons: [DropReason] = [
                .closedByPeer, .networkFailure, .writeFailed, .untrusted("a reason"),
            ]
            self = operand.flag() ? .opened : .closed(operand.pick(reasons))
        case 2: self = .passes(milliseconds: operand.pick(Self.spans))
        case 3: self = .takes(place: operand.take(4))
        case 4: self = .publishes(qos: UInt8(operand.take(2)), count: 1 + operand.take(2))
        case 5:
            let (isUnsubscribe, qos) = (operand.flag(), UInt8(operand.take(2)))
            let filter = operand.pick(["a/#", "b"])
            self =
                isUnsubscribe
                ? .unsubscribes(filter: filter) : .subscribes(filter: filter, qos: qos)
        case 6:
            let label: [UInt8]? = operand.flag() ? nil : [UInt8(operand.take(1))]
            self = operand.pick([.background, .foreground, .wakes, .network(label: label)])
        default:
            let areKnown = operand.flag()
            self = operand.pick([.starts, .stops, .killed, .credentials(areKnown: areKnown)])
        }
    }
}
