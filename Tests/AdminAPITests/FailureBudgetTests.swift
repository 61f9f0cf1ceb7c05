import Addresses
import NIOCore
import Testing

@testable import AdminAPI

@Suite("Budget of failed authentications")
struct FailureBudgetTests {
    private let start = ContinuousClock.now

    /// A function, because `#expect` cannot call mutating methods.
    private func charge(
        _ budget: inout FailureBudget, _ address: IPNetwork, at now: ContinuousClock.Instant
    ) -> Int? {
        budget.charge(address, at: now)
    }

    private func peer(_ address: String) throws -> IPNetwork {
        IPAddress(try SocketAddress(ipAddress: address, port: 1234)).prefix
    }

    @Test("so many guesses a minute, and then to wait; they come back one by one")
    func guesses() throws {
        var budget = FailureBudget(perMinute: 6)
        let address = try peer("192.0.2.1")
        for _ in 0..<6 {
            #expect(charge(&budget, address, at: start) == nil)
        }
        #expect(charge(&budget, address, at: start) == 10)
        let soon = start + .seconds(9)
        #expect(charge(&budget, address, at: soon) == 1)
        let later = start + .seconds(10)
        #expect(charge(&budget, address, at: later) == nil)
        #expect(charge(&budget, address, at: later) == 10)
        let muchLater = start + .seconds(600)
        for _ in 0..<6 {
            #expect(charge(&budget, address, at: muchLater) == nil)
        }
        #expect(charge(&budget, address, at: muchLater) == 10)
    }

    @Test("the log names a peer with its port, an IPv6 address in brackets")
    func peerText() throws {
        let four = try SocketAddress(ipAddress: "192.0.2.1", port: 1234)
        let six = try SocketAddress(ipAddress: "2001:db8::1", port: 1234)
        #expect(IPAddress.text(four) == "192.0.2.1:1234")
        #expect(IPAddress.text(six) == "[2001:db8::1]:1234")
        #expect(IPAddress.text(nil) == "unknown")
        #expect(IPAddress.text(try SocketAddress(unixDomainSocketPath: "/x")) == "unix")
    }

    @Test("one address never pays for another")
    func apart() throws {
        var budget = FailureBudget(perMinute: 1)
        let (one, other) = (try peer("192.0.2.1"), try peer("192.0.2.2"))
        #expect(charge(&budget, one, at: start) == nil)
        #expect(charge(&budget, other, at: start) == nil)
        #expect(charge(&budget, one, at: start) == 60)
    }

    @Test("the table is bounded; the address longest unseen is forgotten")
    func bound() throws {
        var budget = FailureBudget(perMinute: 1)
        let first = try peer("10.0.0.0")
        _ = budget.charge(first, at: start)
        for number in 1...FailureBudget.maximumAddresses {
            let address = try peer("10.1.\(number / 256).\(number % 256)")
            _ = budget.charge(address, at: start + .milliseconds(number))
        }
        let now = start + .seconds(2)
        #expect(charge(&budget, first, at: now) == nil)
        let kept = try peer("10.1.\(FailureBudget.maximumAddresses / 256).0")
        #expect(charge(&budget, kept, at: now) != nil)
    }

    @Test("a /64 network is one peer, and IPv4 in IPv6 is IPv4")
    func peers() throws {
        #expect(try peer("2001:db8:0:1::1") == peer("2001:db8:0:1:ffff::2"))
        #expect(try peer("2001:db8:0:1::1") != peer("2001:db8:0:2::1"))
        #expect(try peer("::ffff:192.0.2.1") == peer("192.0.2.1"))
        #expect(try peer("::ffff:192.0.2.1") != peer("::ffff:192.0.2.2"))
        #expect(try peer("2001:db8:0:1::1").text == "2001:db8:0:1::/64")
        #expect(try peer("192.0.2.1").text == "192.0.2.1")
        #expect(IPAddress(nil).prefix.text == "unknown")
    }
}
