import HermesTesting
import MQTTCodec
import Testing

/// A packet's bytes and content, with the reason for the row.
struct GoldenPacket: Sendable, CustomTestStringConvertible {
    let wire: WireBytes
    let content: PacketContent
    let reason: String

    init(_ wire: WireBytes, _ content: PacketContent, _ reason: String) {
        self.wire = wire
        self.content = content
        self.reason = reason
    }

    var testDescription: String { "\(reason): \(wire)" }
}

/// Malformed bytes, with the broken rule.
struct MalformedRow: Sendable, CustomTestStringConvertible {
    let wire: WireBytes
    let error: MalformedPacket
    let reason: String

    init(_ wire: WireBytes, _ error: MalformedPacket, _ reason: String) {
        self.wire = wire
        self.error = error
        self.reason = reason
    }

    var testDescription: String { "\(reason): \(wire)" }
}

/// Larger than any packet.
let anySize = 1 << 30

extension WireBytes {
    /// A packet of this first byte and body; adds the remaining length.
    static func packet(_ firstByte: UInt8, _ body: [UInt8]) -> WireBytes {
        WireBytes([firstByte] + remainingLength(body.count) + body)
    }

    /// A two-byte length and the bytes.
    static func field(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes
    }

    /// Section 2.2.3 by division, as the specification's pseudo code has it.
    static func remainingLength(_ value: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = value
        repeat {
            bytes.append(UInt8(rest % 128 + (rest >= 128 ? 128 : 0)))
            rest /= 128
        } while rest > 0
        return bytes
    }
}

/// The content of the first packet; `nil` while it is incomplete.
func decodeFirst(
    _ bytes: [UInt8], at offset: Int = 0, maximumSize: Int = anySize
) throws(MalformedPacket) -> PacketContent? {
    let framing = try PacketDecoder.frame(bytes.span.bytes, at: offset, maximumSize: maximumSize)
    switch framing {
    case .incomplete: return nil
    case .frame(let frame):
        return PacketContent(try PacketDecoder.decode(frame, bytes.span.bytes), in: bytes)
    }
}
