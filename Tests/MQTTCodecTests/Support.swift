import HermesTesting
import MQTTCodec
import Testing

/// A packet's bytes and what they say, with the reason why the row is there.
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

/// Bytes that are no packet, with the rule that they break.
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
    /// A packet of this first byte and body; its remaining length is counted.
    static func packet(_ firstByte: UInt8, _ body: [UInt8]) -> WireBytes {
        WireBytes([firstByte] + remainingLength(body.count) + body)
    }

    /// Two bytes of length and the bytes themselves.
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

/// The first packet of `bytes` by content, or `nil` while it is incomplete.
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
