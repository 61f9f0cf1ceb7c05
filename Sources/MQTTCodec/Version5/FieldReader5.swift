/// Reads the fields of one MQTT 5.0 packet, or of its properties, in order and never beyond their
/// end.
struct FieldReader5 {
    private(set) var offset: Int
    let end: Int

    init(_ body: ByteRange) {
        offset = body.start
        end = body.end
    }

    var isAtEnd: Bool { offset == end }
    var remaining: Int { end - offset }

    mutating func byte(_ bytes: RawSpan) throws(PacketFault) -> UInt8 {
        guard offset < end else { throw .truncated }
        offset += 1
        return bytes.byte(at: offset - 1)
    }

    /// Reads two bytes, most significant first (section 1.5.2).
    mutating func integer(_ bytes: RawSpan) throws(PacketFault) -> UInt16 {
        guard remaining >= 2 else { throw .truncated }
        offset += 2
        return UInt16(bytes.byte(at: offset - 2)) << 8 | UInt16(bytes.byte(at: offset - 1))
    }

    /// Reads four bytes, most significant first (section 1.5.3).
    mutating func longInteger(_ bytes: RawSpan) throws(PacketFault) -> UInt32 {
        guard remaining >= 4 else { throw .truncated }
        offset += 4
        return UInt32(
            bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset - 4, as: UInt32.self))
    }

    mutating func variableByteInteger(_ bytes: RawSpan) throws(PacketFault) -> Int {
        guard let decoded = try VariableByteInteger.decode(bytes, at: offset, end: end) else {
            throw .truncated
        }
        offset += decoded.encodedSize
        return decoded.value
    }

    mutating func packetIdentifier(_ bytes: RawSpan) throws(PacketFault) -> PacketIdentifier {
        guard let identifier = PacketIdentifier(try integer(bytes)) else {
            throw .zeroPacketIdentifier
        }
        return identifier
    }

    /// Reads a length of two bytes and that many bytes, whose content is not checked (section
    /// 1.5.6).
    mutating func data(_ bytes: RawSpan) throws(PacketFault) -> ByteRange {
        let count = Int(try integer(bytes))
        guard remaining >= count else { throw .truncated }
        offset += count
        return ByteRange(offset: offset - count, count: count)
    }

    /// Reads a UTF-8 string: a length of two bytes and that many bytes, which are checked.
    mutating func string(_ bytes: RawSpan) throws(PacketFault) -> ByteRange {
        let range = try data(bytes)
        try PacketFault.checkString(bytes, range)
        return range
    }

    /// Takes `count` bytes, which the caller has found to be there.
    mutating func take(_ count: Int) -> ByteRange {
        precondition(count <= remaining, "\(count) bytes taken of \(remaining)")
        defer { offset += count }
        return ByteRange(offset: offset, count: count)
    }

    mutating func rest() -> ByteRange { take(remaining) }

    func finish() throws(PacketFault) {
        guard isAtEnd else { throw .trailingBytes }
    }
}
