/// Finds packets in a byte stream and decodes them; copies nothing and keeps nothing.
///
/// After ``Framing/incomplete(needed:)`` the caller keeps the bytes and offers them again, from the
/// packet's first byte on, once more have arrived. No memory is ever allocated for a length that a
/// peer only claims.
public enum PacketDecoder {
    /// The place of a whole packet in the stream.
    public struct Frame: Hashable, Sendable, BitwiseCopyable {
        public let type: PacketType
        /// The lower half of the packet's first byte; only PUBLISH uses it.
        public let flags: UInt8
        /// The whole packet, fixed header included.
        public let packet: ByteRange
        /// The bytes behind the fixed header.
        public let body: ByteRange
    }

    public enum Framing: Hashable, Sendable {
        case frame(Frame)
        /// More bytes are needed: `needed` is the whole packet's size in bytes, or 0 while its
        /// length is not known yet.
        case incomplete(needed: Int)
    }

    /// Finds the packet that begins at `offset`. A wrong type, reserved flags or a too large size
    /// throw as soon as the bytes that show them have arrived.
    ///
    /// `maximumSize` is in bytes and includes the fixed header.
    public static func frame(
        _ bytes: RawSpan, at offset: Int, maximumSize: Int
    ) throws(MalformedPacket) -> Framing {
        guard offset < bytes.byteCount else { return .incomplete(needed: 0) }
        let first = bytes.byte(at: offset)
        guard let type = PacketType(rawValue: first >> 4) else { throw .reservedPacketType }
        let flags = first & 0x0F
        if let required = type.requiredFlags, flags != required { throw .reservedFlags }
        guard let length = try RemainingLength.decode(bytes, at: offset + 1) else {
            return .incomplete(needed: 0)
        }
        let headerSize = 1 + length.encodedSize
        let size = headerSize + length.value
        guard size <= maximumSize else { throw .packetTooLarge }
        guard bytes.byteCount - offset >= size else { return .incomplete(needed: size) }
        return .frame(
            Frame(
                type: type, flags: flags, packet: ByteRange(offset: offset, count: size),
                body: ByteRange(offset: offset + headerSize, count: length.value)))
    }

    /// The part of an unfinished PUBLISH that has arrived, as a frame whose payload ends with it.
    /// `nil` for another packet, or before the first byte of the body. It decodes once topic and
    /// packet identifier have arrived.
    public static func begunPublish(_ bytes: RawSpan, at offset: Int) -> Frame? {
        guard offset < bytes.byteCount,
            bytes.byte(at: offset) >> 4 == PacketType.publish.rawValue,
            let length = try? RemainingLength.decode(bytes, at: offset + 1)
        else { return nil }
        let body = offset + 1 + length.encodedSize
        guard body < bytes.byteCount else { return nil }
        return Frame(
            type: .publish, flags: bytes.byte(at: offset) & 0x0F,
            packet: ByteRange(offset: offset, count: bytes.byteCount - offset),
            body: ByteRange(offset: body, count: bytes.byteCount - body))
    }

    /// Decodes a packet that ``frame(_:at:maximumSize:)`` found, and checks every rule of its
    /// encoding.
    public static func decode(
        _ frame: Frame, _ bytes: RawSpan
    ) throws(MalformedPacket) -> ControlPacket {
        switch frame.type {
        case .connect: .connect(try Connect.decode(frame.body, bytes))
        case .connack: .connack(try Connack.decode(frame.body, bytes))
        case .publish: .publish(try Publish.decode(flags: frame.flags, frame.body, bytes))
        case .puback: .puback(try acknowledgement(frame.body, bytes))
        case .pubrec: .pubrec(try acknowledgement(frame.body, bytes))
        case .pubrel: .pubrel(try acknowledgement(frame.body, bytes))
        case .pubcomp: .pubcomp(try acknowledgement(frame.body, bytes))
        case .subscribe: .subscribe(try Subscribe.decode(frame.body, bytes))
        case .suback: .suback(try Suback.decode(frame.body, bytes))
        case .unsubscribe: .unsubscribe(try Unsubscribe.decode(frame.body, bytes))
        case .unsuback: .unsuback(try acknowledgement(frame.body, bytes))
        case .pingreq: try empty(.pingreq, frame.body)
        case .pingresp: try empty(.pingresp, frame.body)
        case .disconnect: try empty(.disconnect, frame.body)
        }
    }

    /// Decodes the body of PUBACK, PUBREC, PUBREL, PUBCOMP or UNSUBACK: a packet identifier and
    /// nothing else.
    public static func acknowledgement(
        _ body: ByteRange, _ bytes: RawSpan
    ) throws(MalformedPacket) -> PacketIdentifier {
        guard body.count >= 2 else { throw .truncated }
        guard body.count == 2 else { throw .trailingBytes }
        let value =
            UInt16(bytes.byte(at: body.start)) << 8 | UInt16(bytes.byte(at: body.start + 1))
        guard let identifier = PacketIdentifier(value) else { throw .zeroPacketIdentifier }
        return identifier
    }

    private static func empty(
        _ packet: ControlPacket, _ body: ByteRange
    ) throws(MalformedPacket) -> ControlPacket {
        guard body.isEmpty else { throw .trailingBytes }
        return packet
    }
}
