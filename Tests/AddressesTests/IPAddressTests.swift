import Addresses
import Testing

@Suite("IP addresses")
struct IPAddressTests {
    private static let four = IPAddress(ipv4: 0xC000_0207, port: 1883)
    private static let six = IPAddress(
        ipv6High: 0x2001_0DB8_0001_0002, low: 0x0003_0004_0005_0006, port: 8883)
    private static let mapped = IPAddress(ipv6High: 0, low: 0xFFFF_C000_0207, port: 1883)

    @Test("has the text of an address with its port")
    func text() {
        #expect(Self.four.text == "192.0.2.7:1883")
        #expect(Self.six.text == "[2001:db8:1:2:3:4:5:6]:8883")
        #expect(IPAddress(ipv6High: 0, low: 1, port: 0).text == "[::1]:0")
        #expect(Self.mapped.text == "[::ffff:192.0.2.7]:1883")
        #expect(IPAddress(ipv4: .max, port: .max).text == "255.255.255.255:65535")
        #expect(IPAddress.unknown.text == "unknown")
    }

    @Test(
        "is read from numeric text alone",
        arguments: [
            ("192.0.2.7", four), ("2001:db8:1:2:3:4:5:6", six), ("::ffff:192.0.2.7", mapped),
        ])
    func host(text: String, address: IPAddress) {
        #expect(IPAddress(host: text, port: address.port) == address)
        // A listener on ::ffff:192.0.2.7 is one on 192.0.2.7.
        #expect(IPAddress(listener: text, port: address.port) == address.unmapped)
        #expect(address.hostText == text)
        #expect(IPAddress.text(host: text, port: address.port) == address.text)
    }

    @Test(
        "does not read names, zones and brackets",
        arguments: [
            "", "localhost.", "phone", "[::1]", "fe80::1%eth0", "127.0.0.1\u{0}", "127.0.0.01",
            "127.1",
        ])
    func noAddress(text: String) {
        #expect(IPAddress(host: text) == nil)
        #expect(IPAddress(listener: text) == nil)
    }

    @Test("of a listener may be localhost, which is 127.0.0.1")
    func localhost() {
        #expect(IPAddress(host: "localhost") == nil)
        #expect(IPAddress(listener: "localhost", port: 1) == IPAddress(ipv4: 0x7F00_0001, port: 1))
    }

    @Test("is a loopback address in 127.0.0.0/8, ::1, and IPv4 within IPv6")
    func loopback() throws {
        for text in ["127.0.0.1", "127.255.0.3", "::1", "::ffff:127.0.0.1"] {
            #expect(try #require(IPAddress(host: text)).isLoopback)
        }
        for text in ["128.0.0.1", "0.0.0.0", "::", "::2", "1::1", "::ffff:192.0.2.7"] {
            #expect(try !#require(IPAddress(host: text)).isLoopback)
        }
        #expect(!IPAddress.unknown.isLoopback)
    }

    @Test("of a URL is this machine as a name or a loopback address")
    func loopbackHost() {
        for host in ["localhost", "LocalHost.", "127.9.9.9", "::1", "[::1]"] {
            #expect(IPAddress.isLoopback(host: host))
        }
        for host in [
            "", "localhost.example.com", "127.0.0.1.example.com", "10.0.0.1", "[::2]", "[]",
        ] {
            #expect(!IPAddress.isLoopback(host: host))
        }
    }

    @Test("overlaps an equal one, and the one that stands for all of its family")
    func overlaps() throws {
        func overlap(_ left: String, _ right: String) throws -> Bool {
            try #require(IPAddress(host: left)).overlaps(#require(IPAddress(host: right)))
        }
        #expect(try overlap("192.0.2.7", "192.0.2.7"))
        #expect(try overlap("192.0.2.7", "0.0.0.0") && overlap("::", "::1"))
        #expect(try !overlap("192.0.2.7", "192.0.2.8") && !overlap("::", "0.0.0.0"))
    }

    @Test("that differ in anything are different")
    func equality() {
        let others = [
            IPAddress(ipv4: 0xC000_0208, port: 1883), IPAddress(ipv4: 0xC000_0207, port: 1884),
            IPAddress(ipv6High: 0, low: 0xC000_0207, port: 1883), Self.mapped, .unknown,
        ]
        #expect(Set(others + [Self.four, Self.four]).count == others.count + 1)
        #expect(MemoryLayout<IPAddress>.size <= 24)
    }

    @Test("are counted together by IPv4 address, or by the /64 network of IPv6")
    func prefix() {
        #expect(Self.four.prefix.text == "192.0.2.7")
        #expect(Self.four.prefix == IPAddress(ipv4: 0xC000_0207, port: 9).prefix)
        #expect(Self.four.prefix != IPAddress(ipv4: 0xC000_0206, port: 1883).prefix)
        #expect(Self.six.prefix.text == "2001:db8:1:2::/64")
        #expect(
            Self.six.prefix
                == IPAddress(ipv6High: 0x2001_0DB8_0001_0002, low: 9, port: 9).prefix)
        #expect(
            Self.six.prefix
                != IPAddress(ipv6High: 0x2001_0DB8_0001_0003, low: 9, port: 9).prefix)
        #expect(Self.mapped.prefix == Self.four.prefix)
        #expect(IPAddress.unknown.prefix.text == "unknown")
    }
}

@Suite("IP networks")
struct IPNetworkTests {
    @Test(
        "are read from numeric text and written back",
        arguments: [
            "192.0.2.7", "10.0.0.0/8", "0.0.0.0/0", "192.168.128.0/17", "::1", "2001:db8::/32",
            "::/0", "fe80::/10", "2001:db8:1:2::/64", "2001:db8:1:2:8000::/65",
        ]
    )
    func text(text: String) throws {
        #expect(try #require(IPNetwork(text)).text == text)
    }

    @Test("of all bits is one address")
    func whole() {
        #expect(IPNetwork("192.0.2.7/32") == IPNetwork("192.0.2.7"))
        #expect(IPNetwork("::1/128") == IPNetwork("::1"))
    }

    @Test(
        "reject other text",
        arguments: [
            "", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/08x",
            "10.0.0.1/8", "10.0.0/8", "10.0.0.0/8/8", "localhost", "::1/129", "::1/64", "::g",
            "10.0.0.0/256", "10.0.0.0\u{0}", "10.0.0.0/0008", " 10.0.0.0/8", "[::1]",
        ]
    )
    func malformed(text: String) {
        #expect(IPNetwork(text) == nil)
    }

    @Test("contain addresses with the same prefix")
    func contains() throws {
        func holds(_ network: String, _ address: IPAddress) throws -> Bool {
            try #require(IPNetwork(network)).contains(address)
        }
        let ten = IPAddress(ipv4: 0x0A01_0203, port: 1)
        #expect(try holds("10.0.0.0/8", ten))
        #expect(try holds("10.1.2.3", ten))
        #expect(try holds("0.0.0.0/0", ten))
        #expect(try !holds("10.1.2.2", ten))
        #expect(try !holds("11.0.0.0/8", ten))
        #expect(try !holds("::/0", ten))
        let six = IPAddress(ipv6High: 0x2001_0DB8_0000_0000, low: 0x8000_0000_0000_0001, port: 1)
        #expect(try holds("2001:db8::/64", six))
        #expect(try holds("2001:db8:0:0:8000::/65", six))
        #expect(try !holds("2001:db8::/65", six))
        #expect(try !holds("2001:db8:1::/48", six))
        #expect(try !holds("0.0.0.0/0", six))
        let mapped = IPAddress(ipv6High: 0, low: 0xFFFF_0A01_0203, port: 1)
        #expect(try holds("10.0.0.0/8", mapped))
        #expect(try holds("::ffff:0:0/96", mapped))
        // Both forms of an address are the same address, whichever listener it came through.
        #expect(try holds("::ffff:0:0/96", ten))
        #expect(try !holds("::/0", mapped))
        #expect(try !holds("0.0.0.0/0", .unknown))
        #expect(try !holds("::/0", .unknown))
    }
}
