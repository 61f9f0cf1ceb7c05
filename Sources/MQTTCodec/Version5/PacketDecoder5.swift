/// Finds packets of MQTT 5.0 in a byte stream and decodes them; copies nothing and keeps nothing.
///
/// A connection's first packet is read by ``PacketDecoder``. When that throws
/// ``MalformedPacket/unsupportedProtocolLevel(_:)`` with ``protocolLevel``, the same bytes are read
/// again here, and so is all that follows on the connection.
public enum PacketDecoder5 {
    /// The protocol level in CONNECT.
    public static let protocolLevel: UInt8 = 5

    /// True if this is the body of a CONNECT of this version; a question before
    /// ``PacketDecoder/decode(_:_:)``, which would refuse it.
    public static func isSpoken(inConnect body: ByteRange, _ bytes: RawSpan) -> Bool {
        let opening: StaticString = "\u{0}\u{4}MQTT\u{5}"
        guard body.count >= opening.utf8CodeUnitCount else { return false }
        for index in 0..<opening.utf8CodeUnitCount {
            guard bytes.byte(at: body.start + index) == opening.utf8Start[index] else {
                return false
            }
        }
        return true
    }

    /// The place of a whole packet in the stream.
    public struct Frame: Hashable, Sendable, BitwiseCopyable {
        public let type: PacketType5
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
        _ bytes: RawSpan, at offset: Int, from sender: PacketSender, maximumSize: Int
    ) throws(PacketFault) -> Framing {
        guard offset < bytes.byteCount else { return .incomplete(needed: 0) }
        let first = bytes.byte(at: offset)
        guard let type = PacketType5(rawValue: first >> 4) else { throw .reservedPacketType }
        guard type.isSent(by: sender) else { throw .misdirectedPacket(type) }
        let flags = first & 0x0F
        if let required = type.requiredFlags, flags != required { throw .reservedFlags(type) }
        guard
            let length = try VariableByteInteger.decode(
                bytes, at: offset + 1, end: bytes.byteCount)
        else { return .incomplete(needed: 0) }
        let headerSize = 1 + length.encodedSize
        let size = headerSize + length.value
        guard size <= maximumSize else { throw .packetTooLarge(from: sender) }
        guard bytes.byteCount - offset >= size else { return .incomplete(needed: size) }
        return .frame(
            Frame(
                type: type, flags: flags, packet: ByteRange(offset: offset, count: size),
                body: ByteRange(offset: offset + headerSize, count: length.value)))
    }

    /// The part of an unfinished PUBLISH that has arrived, as a frame whose payload ends with it.
    /// `nil` for another packet, or before the first byte of the body. It decodes once topic,
    /// packet identifier and properties have arrived.
    public static func begunPublish(_ bytes: RawSpan, at offset: Int) -> Frame? {
        guard offset < bytes.byteCount,
            bytes.byte(at: offset) >> 4 == PacketType5.publish.rawValue,
            let length = try? VariableByteInteger.decode(
                bytes, at: offset + 1, end: bytes.byteCount)
        else { return nil }
        let body = offset + 1 + length.encodedSize
        guard body < bytes.byteCount else { return nil }
        return Frame(
            type: .publish, flags: bytes.byte(at: offset) & 0x0F,
            packet: ByteRange(offset: offset, count: bytes.byteCount - offset),
            body: ByteRange(offset: body, count: bytes.byteCount - body))
    }

    /// Decodes a packet that ``frame(_:at:from:maximumSize:)`` found for the same sender, and
    /// checks every rule of its encoding.
    public static func decode(
        _ frame: Frame, _ bytes: RawSpan, from sender: PacketSender
    ) throws(PacketFault) -> ControlPacket5 {
        let body = frame.body
        return switch frame.type {
        case .connect: .connect(try Connect5.decode(body, bytes))
        case .connack: .connack(try Connack5.decode(body, bytes))
        case .publish:
            .publish(try Publish5.decode(flags: frame.flags, body, bytes, from: sender))
        case .puback: .puback(try Acknowledgement5.decode(.puback, body, bytes, from: sender))
        case .pubrec: .pubrec(try Acknowledgement5.decode(.pubrec, body, bytes, from: sender))
        case .pubrel: .pubrel(try Acknowledgement5.decode(.pubrel, body, bytes, from: sender))
        case .pubcomp: .pubcomp(try Acknowledgement5.decode(.pubcomp, body, bytes, from: sender))
        case .subscribe: .subscribe(try Subscribe5.decode(body, bytes))
        case .suback: .suback(try FilterAnswers5.decode(.suback, body, bytes))
        case .unsubscribe: .unsubscribe(try Unsubscribe5.decode(body, bytes))
        case .unsuback: .unsuback(try FilterAnswers5.decode(.unsuback, body, bytes))
        case .pingreq: try empty(.pingreq, body)
        case .pingresp: try empty(.pingresp, body)
        case .disconnect: .disconnect(try Disconnect5.decode(body, bytes, from: sender))
        case .auth: .auth(try Auth5.decode(body, bytes, from: sender))
        }
    }

    private static func empty(
        _ packet: ControlPacket5, _ body: ByteRange
    ) throws(PacketFault) -> ControlPacket5 {
        guard body.isEmpty else { throw .trailingBytes }
        return packet
    }
}
