import Addresses
import Glibc
import HermesTesting
import Structures
import Testing

@testable import Transport

@Suite("Addresses of sockets")
struct SocketAddressTests {
    private static let four = IPAddress(ipv4: 0xC000_0207, port: 1883)
    private static let six = IPAddress(
        ipv6High: 0x2001_0DB8_0001_0002, low: 0x0003_0004_0005_0006, port: 8883)

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
        #expect(IPAddress(storage) == Self.four)
        withUnsafeMutableBytes(of: &storage) { bytes in
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = UInt16(8883).bigEndian
            inet_pton(AF_INET6, "2001:db8:1:2:3:4:5:6", &address.sin6_addr)
            bytes.storeBytes(of: address, as: sockaddr_in6.self)
        }
        #expect(IPAddress(storage) == Self.six)
        storage.ss_family = sa_family_t(AF_UNIX)
        #expect(IPAddress(storage) == .unknown)
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
        #expect(IPAddress(peerOf: -1) == .unknown)
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

    @Test("are written as the kernel takes them")
    func written() {
        for address in [Self.four, Self.six] {
            let (bytes, length) = address.storage
            #expect(IPAddress(bytes) == address)
            #expect(
                Int(length)
                    == (address == Self.four
                        ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size))
        }
        #expect(IPAddress.unknown.storage.length == 0)
    }
}
