/// Reads the fields of one packet in order and never beyond the packet's end.
struct FieldReader {
    private(set) var offset: Int
    let end: Int

    init(_ body: ByteRange) {
        offset = body.start
        end = body.end
    }

    var isAtEnd: Bool { offset == end }

    mutating func byte(_ bytes: RawSpan) throws(MalformedPacket) -> UInt8 {
        guard offset < end else { throw .truncated }
        offset += 1
        return bytes.byte(at: offset - 1)
    }

    /// Reads two bytes, most significant first (section 1.5.2).
    mutating func integer(_ bytes: RawSpan) throws(MalformedPacket) -> UInt16 {
        guard offset + 2 <= end else { throw .truncated }
        offset += 2
        return UInt16(bytes.byte(at: offset - 2)) << 8 | UInt16(bytes.byte(at: offset - 1))
    }

    mutating func packetIdentifier(
        _ bytes: RawSpan
    ) throws(MalformedPacket) -> PacketIdentifier {
        guard let identifier = PacketIdentifier(try integer(bytes)) else {
            throw .zeroPacketIdentifier
        }
        return identifier
    }

    /// Reads a length of two bytes and that many bytes, whose content is not checked (section
    /// 1.5.3).
    mutating func data(_ bytes: RawSpan) throws(MalformedPacket) -> ByteRange {
        let count = Int(try integer(bytes))
        guard offset + count <= end else { throw .truncated }
        offset += count
        return ByteRange(offset: offset - count, count: count)
    }

    /// Reads a UTF-8 string: a length of two bytes and that many bytes, which are checked.
    mutating func string(_ bytes: RawSpan) throws(MalformedPacket) -> ByteRange {
        let range = try data(bytes)
        try TextValidation.checkString(bytes, range)
        return range
    }

    mutating func rest() -> ByteRange {
        defer { offset = end }
        return ByteRange(offset: offset, count: end - offset)
    }

    func finish() throws(MalformedPacket) {
        guard isAtEnd else { throw .trailingBytes }
    }
}
