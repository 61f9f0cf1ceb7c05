import Addresses

/// The PROXY header, versions 1 and 2, which a proxy sends before all else to name its client.
///
/// Source: "The PROXY protocol", versions 1 and 2 (HAProxy, doc/proxy-protocol.txt). Version 1 is a
/// line of text, version 2 begins with twelve fixed bytes:
/// ```
/// PROXY TCP4 192.0.2.7 198.51.100.1 56324 1883\r\n
/// 0D 0A 0D 0A 00 0D 0A 51 55 49 54 0A | version, command | family | length (2) | addresses, fields
/// ```
public struct ProxyHeader: Hashable, Sendable, BitwiseCopyable {
    /// The client's address; `nil` for a connection of the proxy itself or a header without
    /// address. The address of the connection then counts.
    public let source: IPAddress?
    /// The size of the header in bytes.
    public let size: Int

    private static let lineSignature = [UInt8]("PROXY ".utf8)
    private static let binarySignature = [UInt8]("\r\n\r\n\0\r\nQUIT\n".utf8)
    /// The longest line of version 1, including its line end.
    static let longestLine = 107
    /// The size of a version 2 header before its addresses.
    private static let fixedSize = 16
    /// The largest announced length in version 2; addresses take 36 bytes, the rest is ignored.
    static let mostAnnounced = 1_024
    public static let maximumSize = fixedSize + mostAnnounced

    /// Parses a stream's header. `nil` asks for more bytes, and only below ``maximumSize``.
    public static func decode(_ bytes: RawSpan) throws(MalformedProxyHeader) -> ProxyHeader? {
        let isLine = bytes.begins(with: lineSignature)
        guard isLine || bytes.begins(with: binarySignature) else { throw .signature }
        return try isLine ? decodeLine(bytes) : decodeBinary(bytes)
    }

    // MARK: Version 1

    private static func decodeLine(
        _ bytes: RawSpan
    ) throws(MalformedProxyHeader) -> ProxyHeader? {
        guard let end = try lineEnd(bytes) else { return nil }
        let size = end + 2
        let fields = bytes.copy(0..<end).split(
            separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        let isFour: Bool
        switch fields.count > 1 ? String(decoding: fields[1], as: UTF8.self) : "" {
        // The rest of such a line is ignored.
        case "UNKNOWN": return ProxyHeader(source: nil, size: size)
        case "TCP4": isFour = true
        case "TCP6": isFour = false
        default: throw .family
        }
        guard fields.count == 6 else { throw .fields }
        let source = try address(fields[2], isFour, port: fields[4])
        _ = try address(fields[3], isFour, port: fields[5])
        return ProxyHeader(source: source, size: size)
    }

    /// The offset of the line's CR; `nil` asks for more bytes.
    private static func lineEnd(_ bytes: RawSpan) throws(MalformedProxyHeader) -> Int? {
        for offset in 0..<min(bytes.byteCount, longestLine - 1) where bytes.byte(at: offset) < 0x20
        {
            guard bytes.byte(at: offset) == UInt8(ascii: "\r") else { throw .lineEnd }
            guard offset + 1 < bytes.byteCount else { return nil }
            guard bytes.byte(at: offset + 1) == UInt8(ascii: "\n") else { throw .lineEnd }
            return offset
        }
        guard bytes.byteCount < longestLine - 1 else { throw .lineTooLong }
        return nil
    }

    private static func address(
        _ host: ArraySlice<UInt8>, _ isFour: Bool, port: ArraySlice<UInt8>
    ) throws(MalformedProxyHeader) -> IPAddress {
        let isDigits = port.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard isDigits, port.count == 1 || port.first != UInt8(ascii: "0"),
            let port = UInt16(String(decoding: port, as: UTF8.self))
        else { throw .port }
        guard let address = IPAddress(host: String(decoding: host, as: UTF8.self), port: port),
            address.family == (isFour ? .ipv4 : .ipv6)
        else { throw .address }
        return address.unmapped
    }

    // MARK: Version 2

    private static func decodeBinary(
        _ bytes: RawSpan
    ) throws(MalformedProxyHeader) -> ProxyHeader? {
        guard bytes.byteCount > 12 else { return nil }
        let isLocal = try readsLocal(bytes.byte(at: 12))
        guard bytes.byteCount > 13 else { return nil }
        let width = try isLocal ? 0 : addressWidth(bytes.byte(at: 13))
        guard bytes.byteCount >= fixedSize else { return nil }
        let announced = Int(bytes.byte(at: 14)) << 8 | Int(bytes.byte(at: 15))
        guard announced <= mostAnnounced else { throw .tooLong }
        // Two addresses and two ports.
        guard width == 0 || announced >= 2 * width + 4 else { throw .tooShort }
        let size = fixedSize + announced
        guard bytes.byteCount >= size else { return nil }
        let port = UInt16(truncatingIfNeeded: number(bytes, fixedSize + 2 * width, 2))
        let source: IPAddress? =
            switch width {
            case 4:
                IPAddress(
                    ipv4: UInt32(truncatingIfNeeded: number(bytes, fixedSize, 4)), port: port)
            case 16:
                IPAddress(
                    ipv6High: number(bytes, fixedSize, 8), low: number(bytes, fixedSize + 8, 8),
                    port: port
                ).unmapped
            default: nil
            }
        return ProxyHeader(source: source, size: size)
    }

    /// True for the command LOCAL: the proxy connects for itself, as in health checks.
    private static func readsLocal(_ byte: UInt8) throws(MalformedProxyHeader) -> Bool {
        guard byte >> 4 == 2 else { throw .version }
        switch byte & 0xF {
        case 0: return true
        case 1: return false
        default: throw .command
        }
    }

    /// The size of one address; 0 for all but TCP over IPv4 or IPv6, whose addresses are ignored.
    private static func addressWidth(_ family: UInt8) throws(MalformedProxyHeader) -> Int {
        switch family {
        case 0x11: return 4
        case 0x21: return 16
        // Unspecified, datagrams, Unix sockets.
        case 0x00, 0x12, 0x22, 0x31, 0x32: return 0
        default: throw .family
        }
    }

    /// Bytes as a big-endian number; 0 when they are missing.
    private static func number(_ bytes: RawSpan, _ offset: Int, _ count: Int) -> UInt64 {
        guard offset + count <= bytes.byteCount else { return 0 }
        var number: UInt64 = 0
        for place in offset..<offset + count {
            number = number << 8 | UInt64(bytes.byte(at: place))
        }
        return number
    }
}

/// An error in a PROXY header; the connection closes.
public enum MalformedProxyHeader: UInt8, Error, Hashable, Sendable, BitwiseCopyable, CaseIterable {
    /// The stream begins with neither version.
    case signature
    case lineTooLong
    case lineEnd
    case family
    case fields
    case address
    case port
    case version
    case command
    case tooShort
    case tooLong

    /// The error in words, for a log.
    public var explanation: String {
        switch self {
        case .signature: "what came begins with no PROXY header"
        case .lineTooLong: "a line of more than \(ProxyHeader.longestLine) bytes"
        case .lineEnd: "a line that does not end in CR and LF"
        case .family: "an unknown protocol or address family"
        case .fields: "not two addresses and two ports, each behind one blank"
        case .address: "an address that is none of its family"
        case .port: "a port that is no number from 0 to 65535"
        case .version: "a version that is not 2"
        case .command: "an unknown command"
        case .tooShort: "a length with no room for its addresses"
        case .tooLong: "a length of more than \(ProxyHeader.mostAnnounced) bytes"
        }
    }
}

extension RawSpan {
    /// One byte, bounds-checked; "unsafe" by type only, as every byte is a valid `UInt8`.
    fileprivate func byte(at offset: Int) -> UInt8 {
        unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    /// True when the available bytes agree with the expected ones.
    fileprivate func begins(with expected: [UInt8]) -> Bool {
        for offset in 0..<min(byteCount, expected.count) where byte(at: offset) != expected[offset]
        {
            return false
        }
        return true
    }

    fileprivate func copy(_ range: Range<Int>) -> [UInt8] {
        var copied: [UInt8] = []
        copied.reserveCapacity(range.count)
        for offset in range { copied.append(byte(at: offset)) }
        return copied
    }
}
