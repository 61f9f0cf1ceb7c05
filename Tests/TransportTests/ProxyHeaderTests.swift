import HermesTesting
import Testing
import Transport

@Suite("PROXY headers")
struct ProxyHeaderTests {
    /// A header of version 2 with this block of addresses and fields.
    private static func binary(
        command: UInt8 = 0x21, family: UInt8 = 0x11, _ block: [UInt8] = fourBlock,
        announcing count: Int? = nil
    ) -> [UInt8] {
        let count = count ?? block.count
        return [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
            + [command, family, UInt8(count >> 8), UInt8(count & 0xFF)] + block
    }

    /// 192.0.2.7:56324 to 198.51.100.1:1883.
    private static let fourBlock: [UInt8] = [192, 0, 2, 7, 198, 51, 100, 1, 0xDC, 0x04, 0x07, 0x5B]
    /// [2001:db8::7]:56324 to [2001:db8::1]:1883.
    private static let sixBlock: [UInt8] =
        [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7]
        + [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1]
        + [0xDC, 0x04, 0x07, 0x5B]
    /// A field of type NOOP.
    private static let field: [UInt8] = [0x04, 0x00, 0x03, 1, 2, 3]

    private func decode(_ bytes: [UInt8]) throws(MalformedProxyHeader) -> ProxyHeader? {
        try ProxyHeader.decode(bytes.span.bytes)
    }

    private func decode(line: String) throws(MalformedProxyHeader) -> ProxyHeader? {
        try decode([UInt8](line.utf8))
    }

    private func flaw(_ bytes: [UInt8]) -> MalformedProxyHeader? {
        do throws(MalformedProxyHeader) {
            _ = try decode(bytes)
            return nil
        } catch {
            return error
        }
    }

    // MARK: Version 1

    @Test(
        "of version 1 name the peer, or leave it to the connection",
        arguments: [
            ("PROXY TCP4 192.0.2.7 198.51.100.1 56324 1883\r\n", "192.0.2.7:56324"),
            ("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255:65535"),
            ("PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", "0.0.0.0:0"),
            ("PROXY TCP6 2001:db8::7 2001:db8::1 56324 8883\r\n", "[2001:db8::7]:56324"),
            ("PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n", "192.0.2.7:1"),
            (
                "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                    + "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
                "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"
            ),
            ("PROXY UNKNOWN\r\n", nil),
            ("PROXY UNKNOWN whatever stands here, \u{7F}é  \r\n", nil),
            (
                "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                    + "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n", nil
            ),
        ] as [(String, String?)]
    )
    func line(line: String, source: String?) throws {
        let header = try #require(try decode(line: line))
        #expect(header.source?.text == source)
        #expect(header.size == line.utf8.count)
        // Later bytes do not matter, and fewer are not enough.
        let bytes = [UInt8](line.utf8)
        #expect(try decode(bytes + [0x10, 0x00]) == header)
        for count in bytes.indices { #expect(try decode([UInt8](bytes.prefix(count))) == nil) }
    }

    @Test(
        "of version 1 are refused when they are malformed",
        arguments: [
            ("PROXY\tTCP4 192.0.2.7 198.51.100.1 1 2\r\n", .signature),
            ("proxy TCP4 192.0.2.7 198.51.100.1 1 2\r\n", .signature),
            (" PROXY TCP4 192.0.2.7 198.51.100.1 1 2\r\n", .signature),
            ("GET / HTTP/1.1\r\n", .signature),
            ("PROXY \r\n", .family),
            ("PROXY  TCP4 192.0.2.7 198.51.100.1 1 2\r\n", .family),
            ("PROXY TCP5 192.0.2.7 198.51.100.1 1 2\r\n", .family),
            ("PROXY tcp4 192.0.2.7 198.51.100.1 1 2\r\n", .family),
            ("PROXY UDP4 192.0.2.7 198.51.100.1 1 2\r\n", .family),
            ("PROXY TCP4\r\n", .fields),
            ("PROXY TCP4 192.0.2.7 198.51.100.1 1\r\n", .fields),
            ("PROXY TCP4 192.0.2.7 198.51.100.1 1 2 3\r\n", .fields),
            ("PROXY TCP4 192.0.2.7 198.51.100.1 1 2 \r\n", .fields),
            ("PROXY TCP4 192.0.2.7  198.51.100.1 1 2\r\n", .fields),
            ("PROXY TCP4 192.0.2.7 198.51.100.1  2\r\n", .port),
            ("PROXY TCP4 2001:db8::7 2001:db8::1 1 2\r\n", .address),
            ("PROXY TCP6 192.0.2.7 198.51.100.1 1 2\r\n", .address),
            ("PROXY TCP4 192.0.2.7 2001:db8::1 1 2\r\n", .address),
            ("PROXY TCP4 192.0.2 198.51.100.1 1 2\r\n", .address),
            ("PROXY TCP4 192.0.2.256 198.51.100.1 1 2\r\n", .address),
            ("PROXY TCP4 192.0.2.07 198.51.100.1 1 2\r\n", .address),
            ("PROXY TCP4 192.0.2.0x7 198.51.100.1 1 2\r\n", .address),
            ("PROXY TCP4 localhost 198.51.100.1 1 2\r\n", .address),
            ("PROXY TCP4 192.0.2.7/32 198.51.100.1 1 2\r\n", .address),
            ("PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", .address),
            ("PROXY TCP6 [::1] ::1 1 2\r\n", .address),
            ("PROXY TCP6 2001::db8::7 ::1 1 2\r\n", .address),
            ("PROXY TCP6 2001:db8:1:2:3:4:5:6:7 ::1 1 2\r\n", .address),
            ("PROXY TCP4 192.0.2.7 198.51.100.1 65536 2\r\n", .port),
            ("PROXY TCP4 192.0.2.7 198.51.100.1 1 65536\r\n", .port),
            ("PROXY TCP4 192.0.2.7 198.51.100.1 01 2\r\n", .port),
            ("PROXY TCP4 192.0.2.7 198.51.100.1 +1 2\r\n", .port),
            ("PROXY TCP4 192.0.2.7 198.51.100.1 -1 2\r\n", .port),
            ("PROXY TCP4 192.0.2.7 198.51.100.1 a 2\r\n", .port),
            ("PROXY TCP4 192.0.2.7 198.51.100.1 1 99999999999999999999\r\n", .port),
            ("PROXY TCP4 192.0.2.7 198.51.100.1 1 2\n", .lineEnd),
            ("PROXY TCP4 192.0.2.7 198.51.100.1 1 2\rx", .lineEnd),
            ("PROXY TCP4 192.0.2.7 198.51.100.1 1 2\r\r\n", .lineEnd),
            ("PROXY TCP4 192.0.2.7\u{0} 198.51.100.1 1 2\r\n", .lineEnd),
            ("PROXY UNKNOWN \u{1B}[31m\r\n", .lineEnd),
            ("PROXY UNKNOWN " + String(repeating: "x", count: 92) + "\r\n", .lineTooLong),
            ("PROXY UNKNOWN " + String(repeating: "x", count: 92), .lineTooLong),
            ("PROXY UNKNOWN " + String(repeating: "x", count: 2_000), .lineTooLong),
        ] as [(String, MalformedProxyHeader)]
    )
    func malformedLine(line: String, error: MalformedProxyHeader) {
        #expect(flaw([UInt8](line.utf8)) == error)
    }

    @Test("of version 1 have a last length that is taken")
    func longestLine() throws {
        let line = "PROXY UNKNOWN " + String(repeating: "x", count: 91) + "\r\n"
        #expect(line.utf8.count == 107)
        #expect(try decode(line: line)?.size == 107)
    }

    // MARK: Version 2

    @Test("of version 2 name the peer, with and without fields behind the addresses")
    func binary() throws {
        for fields in [[], Self.field, [UInt8](repeating: 0xFF, count: 900)] {
            for (family, block, source) in [
                (0x11, Self.fourBlock, "192.0.2.7:56324"),
                (0x21, Self.sixBlock, "[2001:db8::7]:56324"),
            ] as [(UInt8, [UInt8], String)] {
                let bytes = Self.binary(family: family, block + fields)
                let header = try #require(try decode(bytes))
                #expect(header.source?.text == source)
                #expect(header.size == bytes.count)
                #expect(try decode(bytes + [0x10, 0x00]) == header)
                for count in bytes.indices {
                    #expect(try decode([UInt8](bytes.prefix(count))) == nil)
                }
            }
        }
    }

    @Test(
        "of version 2 for other protocols, or of the proxy's own checks, give no address")
    func withoutSource() throws {
        for family in [0x00, 0x12, 0x22, 0x31, 0x32] as [UInt8] {
            for block in [[], Self.fourBlock, [UInt8](repeating: 1, count: 216)] {
                let bytes = Self.binary(family: family, block)
                let header = try #require(try decode(bytes))
                #expect(header.source == nil)
                #expect(header.size == bytes.count)
            }
        }
        // LOCAL, with any family and addresses.
        for (family, block) in [
            (0x00, []), (0x11, Self.fourBlock), (0x21, []), (0xFF, [1, 2, 3]),
        ] as [(UInt8, [UInt8])] {
            let bytes = Self.binary(command: 0x20, family: family, block)
            let header = try #require(try decode(bytes))
            #expect(header.source == nil)
            #expect(header.size == bytes.count)
        }
    }

    @Test("of version 2 are refused when they are malformed, as early as they show it")
    func malformedBinary() {
        for (bytes, error, seen) in [
            (Self.binary(command: 0x11), .version, 13),
            (Self.binary(command: 0x01), .version, 13),
            (Self.binary(command: 0x31), .version, 13),
            (Self.binary(command: 0x22), .command, 13),
            (Self.binary(command: 0x2F), .command, 13),
            (Self.binary(family: 0x10), .family, 14),
            (Self.binary(family: 0x01), .family, 14),
            (Self.binary(family: 0x13), .family, 14),
            (Self.binary(family: 0x41), .family, 14),
            (Self.binary(announcing: 0), .tooShort, 16),
            (Self.binary(announcing: 11), .tooShort, 16),
            (Self.binary(family: 0x21, announcing: 35), .tooShort, 16),
            (Self.binary(announcing: 1_025), .tooLong, 16),
            (Self.binary(announcing: 0xFFFF), .tooLong, 16),
            (Self.binary(command: 0x20, announcing: 0xFFFF), .tooLong, 16),
        ] as [([UInt8], MalformedProxyHeader, Int)] {
            #expect(flaw(bytes) == error)
            #expect(flaw([UInt8](bytes.prefix(seen))) == error)
            #expect(flaw([UInt8](bytes.prefix(seen - 1))) == nil)
        }
        // One wrong byte at each place of the signature.
        for index in 0..<12 {
            var bytes = Self.binary()
            bytes[index] ^= 0x20
            #expect(flaw([UInt8](bytes.prefix(index + 1))) == .signature)
            #expect(flaw(bytes) == .signature)
        }
    }

    @Test("of version 2 have a last length that is taken")
    func longestBinary() throws {
        let block = Self.fourBlock + [UInt8](repeating: 0, count: 1_012)
        #expect(try decode(Self.binary(block))?.size == 1_040)
        #expect(ProxyHeader.maximumSize == 1_040)
    }

    @Test("are refused at their first byte when MQTT or TLS comes instead")
    func foreign() {
        #expect(flaw([0x10]) == .signature)
        #expect(flaw([0x16]) == .signature)
        #expect(flaw([]) == nil)
    }

    @Test("have an explanation for each flaw")
    func explanations() {
        #expect(
            Set(MalformedProxyHeader.allCases.map(\.explanation)).count
                == MalformedProxyHeader.allCases.count)
    }
}
