import Glibc
import HermesTesting
import Structures
import Testing
import Transport

@Suite("Peer addresses")
struct PeerAddressTests {
    private static let four = PeerAddress(ipv4: 0xC000_0207, port: 1883)
    private static let six = PeerAddress(
        ipv6High: 0x2001_0DB8_0001_0002, low: 0x0003_0004_0005_0006, port: 8883)
    private static let mapped = PeerAddress(ipv6High: 0, low: 0xFFFF_C000_0207, port: 1883)

    @Test("has the text of an address with its port")
    func text() {
        #expect(Self.four.text == "192.0.2.7:1883")
        #expect(Self.six.text == "[2001:db8:1:2:3:4:5:6]:8883")
        #expect(PeerAddress(ipv6High: 0, low: 1, port: 0).text == "[::1]:0")
        #expect(Self.mapped.text == "[::ffff:192.0.2.7]:1883")
        #expect(PeerAddress(ipv4: .max, port: .max).text == "255.255.255.255:65535")
        #expect(PeerAddress.unknown.text == "unknown")
    }

    @Test("is read from the kernel's structure")
    func storage() {
        var storage = sockaddr_storage()
        withUnsafeMutableBytes(of: &storage) { bytes in
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = UInt16(1883).bigEndian
            inet_pton(AF_INET, "192.0.2.7", &address.sin_addr)
            bytes.storeBytes(of: address, as: sockaddr_in.self)
        }
        #expect(PeerAddress(storage) == Self.four)
        withUnsafeMutableBytes(of: &storage) { bytes in
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = UInt16(8883).bigEndian
            inet_pton(AF_INET6, "2001:db8:1:2:3:4:5:6", &address.sin6_addr)
            bytes.storeBytes(of: address, as: sockaddr_in6.self)
        }
        #expect(PeerAddress(storage) == Self.six)
        storage.ss_family = sa_family_t(AF_UNIX)
        #expect(PeerAddress(storage) == .unknown)
    }

    @Test(
        "of a socket is known while it is connected, after a reset, and after the end of both streams"
    )
    func sockets() throws {
        for isReset in [true, false] {
            var server = try EchoServer()
            let (peer, handle) = try server.connect()
            let port = peer.localPort
            #expect(server.reactor.peerAddress(of: handle).text == "127.0.0.1:\(port)")
            if isReset { peer.reset() } else { peer.end() }
            server.reactor.finishSending(handle)
            #expect(try isHungUp(&server))
            #expect(server.reactor.peerAddress(of: handle).text == "127.0.0.1:\(port)")
            server.close(handle)
            #expect(server.reactor.peerAddress(of: handle) == .unknown)
        }
        #expect(PeerAddress(peerOf: -1) == .unknown)
    }

    /// Waits until both directions have ended, without reading.
    private func isHungUp(_ server: inout EchoServer) throws -> Bool {
        for _ in 0..<500 {
            let count = try server.reactor.wait(milliseconds: 20)
            for index in 0..<count {
                if case .connection(_, _, _, true, _) = server.reactor.event(index) { return true }
            }
        }
        return false
    }

    @Test("that differ in anything are different")
    func equality() {
        let others = [
            PeerAddress(ipv4: 0xC000_0208, port: 1883), PeerAddress(ipv4: 0xC000_0207, port: 1884),
            PeerAddress(ipv6High: 0, low: 0xC000_0207, port: 1883), Self.mapped, .unknown,
        ]
        #expect(Set(others + [Self.four, Self.four]).count == others.count + 1)
        #expect(MemoryLayout<PeerAddress>.size <= 24)
    }

    @Test("are counted together by IPv4 address, or by the /64 network of IPv6")
    func prefix() {
        #expect(Self.four.prefix.text == "192.0.2.7")
        #expect(Self.four.prefix == PeerAddress(ipv4: 0xC000_0207, port: 9).prefix)
        #expect(Self.four.prefix != PeerAddress(ipv4: 0xC000_0206, port: 1883).prefix)
        #expect(Self.six.prefix.text == "2001:db8:1:2::/64")
        #expect(
            Self.six.prefix
                == PeerAddress(ipv6High: 0x2001_0DB8_0001_0002, low: 9, port: 9).prefix)
        #expect(
            Self.six.prefix
                != PeerAddress(ipv6High: 0x2001_0DB8_0001_0003, low: 9, port: 9).prefix)
        #expect(Self.mapped.prefix == Self.four.prefix)
        #expect(PeerAddress.unknown.prefix.text == "unknown")
    }
}

@Suite("Peer networks")
struct PeerNetworkTests {
    @Test(
        "are read from numeric text and written back",
        arguments: [
            "192.0.2.7", "10.0.0.0/8", "0.0.0.0/0", "192.168.128.0/17", "::1", "2001:db8::/32",
            "::/0", "fe80::/10", "2001:db8:1:2::/64", "2001:db8:1:2:8000::/65",
        ]
    )
    func text(text: String) throws {
        #expect(try #require(PeerNetwork(text)).text == text)
    }

    @Test("of all bits is one address")
    func whole() {
        #expect(PeerNetwork("192.0.2.7/32") == PeerNetwork("192.0.2.7"))
        #expect(PeerNetwork("::1/128") == PeerNetwork("::1"))
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
        #expect(PeerNetwork(text) == nil)
    }

    @Test("contain addresses with the same prefix")
    func contains() throws {
        func holds(_ network: String, _ address: PeerAddress) throws -> Bool {
            try #require(PeerNetwork(network)).contains(address)
        }
        let ten = PeerAddress(ipv4: 0x0A01_0203, port: 1)
        #expect(try holds("10.0.0.0/8", ten))
        #expect(try holds("10.1.2.3", ten))
        #expect(try holds("0.0.0.0/0", ten))
        #expect(try !holds("10.1.2.2", ten))
        #expect(try !holds("11.0.0.0/8", ten))
        #expect(try !holds("::/0", ten))
        let six = PeerAddress(ipv6High: 0x2001_0DB8_0000_0000, low: 0x8000_0000_0000_0001, port: 1)
        #expect(try holds("2001:db8::/64", six))
        #expect(try holds("2001:db8:0:0:8000::/65", six))
        #expect(try !holds("2001:db8::/65", six))
        #expect(try !holds("2001:db8:1::/48", six))
        #expect(try !holds("0.0.0.0/0", six))
        let mapped = PeerAddress(ipv6High: 0, low: 0xFFFF_0A01_0203, port: 1)
        #expect(try holds("10.0.0.0/8", mapped))
        #expect(try holds("::ffff:0:0/96", mapped))
        #expect(try !holds("0.0.0.0/0", .unknown))
        #expect(try !holds("::/0", .unknown))
    }
}
