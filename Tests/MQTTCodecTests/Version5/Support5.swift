import HermesTesting
import MQTTCodec
import Testing

/// A packet's bytes and content, with the reason for the row.
struct GoldenPacket5: Sendable, CustomTestStringConvertible {
    let wire: WireBytes
    let content: PacketContent5
    let reason: String

    init(_ wire: WireBytes, _ content: PacketContent5, _ reason: String) {
        self.wire = wire
        self.content = content
        self.reason = reason
    }

    var testDescription: String { "\(reason): \(wire)" }
}

/// Malformed bytes, with the broken rule: its statement and the code that answers it.
struct FaultRow: Sendable, CustomTestStringConvertible {
    let wire: WireBytes
    let sender: PacketSender
    let fault: PacketFault
    let statement: String
    let code: UInt8
    let reason: String

    init(
        _ wire: WireBytes, from sender: PacketSender = .client, _ fault: PacketFault,
        _ statement: String, _ code: UInt8, _ reason: String
    ) {
        self.wire = wire
        self.sender = sender
        self.fault = fault
        self.statement = statement
        self.code = code
        self.reason = reason
    }

    var testDescription: String { "\(statement), \(reason): \(wire)" }
}

/// The first packet as decoded; `nil` while it is incomplete.
func decodePacket5(
    _ bytes: [UInt8], at offset: Int = 0, from sender: PacketSender, maximumSize: Int = anySize
) throws(PacketFault) -> ControlPacket5? {
    let framing = try PacketDecoder5.frame(
        bytes.span.bytes, at: offset, from: sender, maximumSize: maximumSize)
    switch framing {
    case .incomplete: return nil
    case .frame(let frame):
        return try PacketDecoder5.decode(frame, bytes.span.bytes, from: sender)
    }
}

/// The content of the first packet; `nil` while it is incomplete.
func decodeFirst5(
    _ bytes: [UInt8], at offset: Int = 0, from sender: PacketSender, maximumSize: Int = anySize
) throws(PacketFault) -> PacketContent5? {
    try decodePacket5(bytes, at: offset, from: sender, maximumSize: maximumSize)
        .map { PacketContent5($0, in: bytes) }
}

/// The text's bytes.
func utf8(_ text: String) -> [UInt8] { Array(text.utf8) }

func connect5(
    _ clientID: String = "", _ change: (inout PacketContent5.Connect) -> Void = { _ in }
) -> PacketContent5 {
    var connect = PacketContent5.Connect(clientID: utf8(clientID))
    change(&connect)
    return .connect(connect)
}
