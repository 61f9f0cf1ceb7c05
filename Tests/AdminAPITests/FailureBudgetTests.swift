import NIOCore
import Testing

@testable import AdminAPI

@Suite("Budget of failed authentications")
struct FailureBudgetTests {
    private let start = ContinuousClock.now

    /// Outside of `#expect`, which cannot change what it looks at.
    private func judge(
        _ budget: inout FailureBudget, _ address: PeerAddress, isGuess: Bool,
        at now: ContinuousClock.Instant
    ) -> FailureBudget.Verdict {
        budget.judge(address, isGuess: isGuess, at: now)
    }

    private func peer(_ address: String) throws -> PeerAddress {
        PeerAddress(try SocketAddress(ipAddress: address, port: 1234))
    }

    @Test("so many guesses a minute, and then to wait; they come back one by one")
    func guesses() throws {
        var budget = FailureBudget(perMinute: 6)
        let address = try peer("192.0.2.1")
        for _ in 0..<6 {
            #expect(judge(&budget, address, isGuess: true, at: start).retryAfterSeconds == nil)
        }
        #expect(judge(&budget, address, isGuess: true, at: start).retryAfterSeconds == 10)
        let soon = start + .seconds(9)
        #expect(judge(&budget, address, isGuess: true, at: soon).retryAfterSeconds == 1)
        let later = start + .seconds(10)
        #expect(judge(&budget, address, isGuess: true, at: later).retryAfterSeconds == nil)
        #expect(judge(&budget, address, isGuess: true, at: later).retryAfterSeconds == 10)
        let muchLater = start + .seconds(600)
        for _ in 0..<6 {
            #expect(judge(&budget, address, isGuess: true, at: muchLater).retryAfterSeconds == nil)
        }
        #expect(judge(&budget, address, isGuess: true, at: muchLater).retryAfterSeconds == 10)
    }

    @Test("a request without a token costs nothing, and is logged all the same")
    func missing() throws {
        var budget = FailureBudget(perMinute: 1)
        let address = try peer("192.0.2.1")
        for number in 0..<100 {
            let verdict = budget.judge(address, isGuess: false, at: start)
            #expect(verdict.retryAfterSeconds == nil)
            #expect(verdict.suppressed == (number == 0 ? 0 : nil))
        }
        #expect(judge(&budget, address, isGuess: true, at: start).retryAfterSeconds == nil)
    }

    @Test("each address is logged once a minute, with how many were not")
    func lines() throws {
        var budget = FailureBudget(perMinute: 3)
        let (one, other) = (try peer("192.0.2.1"), try peer("192.0.2.2"))
        #expect(judge(&budget, one, isGuess: true, at: start).suppressed == 0)
        for _ in 0..<7 {
            #expect(judge(&budget, one, isGuess: true, at: start + .seconds(59)).suppressed == nil)
        }
        #expect(judge(&budget, other, isGuess: true, at: start + .seconds(59)).suppressed == 0)
        #expect(judge(&budget, one, isGuess: true, at: start + .seconds(60)).suppressed == 7)
        #expect(judge(&budget, one, isGuess: true, at: start + .seconds(61)).suppressed == nil)
    }

    @Test("that an address has to wait is logged at once, and then once a minute")
    func waits() throws {
        var budget = FailureBudget(perMinute: 2)
        let (one, other) = (try peer("192.0.2.1"), try peer("192.0.2.2"))
        let lines = (0..<5).map { _ in judge(&budget, one, isGuess: true, at: start).reportsWait }
        #expect(lines == [false, false, true, false, false])
        for _ in 0..<2 { #expect(!judge(&budget, other, isGuess: true, at: start).reportsWait) }
        #expect(judge(&budget, other, isGuess: true, at: start).reportsWait)
        #expect(!judge(&budget, one, isGuess: true, at: start + .seconds(29)).reportsWait)
        // Two have come back meanwhile, and are used up again.
        let later = start + .seconds(90)
        for _ in 0..<2 { #expect(!judge(&budget, one, isGuess: true, at: later).reportsWait) }
        #expect(judge(&budget, one, isGuess: true, at: later).reportsWait)
    }

    @Test("the log names a peer with its port, an IPv6 address in brackets")
    func peerText() throws {
        let four = try SocketAddress(ipAddress: "192.0.2.1", port: 1234)
        let six = try SocketAddress(ipAddress: "2001:db8::1", port: 1234)
        #expect(PeerAddress.text(four) == "192.0.2.1:1234")
        #expect(PeerAddress.text(six) == "[2001:db8::1]:1234")
        #expect(PeerAddress.text(nil) == "unix")
        #expect(PeerAddress.text(try SocketAddress(unixDomainSocketPath: "/x")) == "unix")
    }

    @Test("one address never pays for another")
    func apart() throws {
        var budget = FailureBudget(perMinute: 1)
        _ = budget.judge(try peer("192.0.2.1"), isGuess: true, at: start)
        let other = budget.judge(try peer("192.0.2.2"), isGuess: true, at: start)
        #expect(other.retryAfterSeconds == nil)
    }

    @Test("the table is bounded; the address longest unseen is forgotten")
    func bound() throws {
        var budget = FailureBudget(perMinute: 1)
        let first = try peer("10.0.0.0")
        _ = budget.judge(first, isGuess: true, at: start)
        for number in 1...FailureBudget.maximumAddresses {
            let address = try peer("10.1.\(number / 256).\(number % 256)")
            _ = budget.judge(address, isGuess: true, at: start + .milliseconds(number))
        }
        let now = start + .seconds(2)
        #expect(judge(&budget, first, isGuess: true, at: now).retryAfterSeconds == nil)
        let kept = try peer("10.1.\(FailureBudget.maximumAddresses / 256).0")
        #expect(judge(&budget, kept, isGuess: true, at: now).retryAfterSeconds != nil)
    }

    @Test("a /64 network is one peer, and IPv4 in IPv6 is IPv4")
    func peers() throws {
        #expect(try peer("2001:db8:0:1::1") == peer("2001:db8:0:1:ffff::2"))
        #expect(try peer("2001:db8:0:1::1") != peer("2001:db8:0:2::1"))
        #expect(try peer("::ffff:192.0.2.1") == peer("192.0.2.1"))
        #expect(try peer("::ffff:192.0.2.1") != peer("::ffff:192.0.2.2"))
        #expect(try peer("2001:db8:0:1::1").description == "2001:db8:0:1::/64")
        #expect(try peer("192.0.2.1").description == "192.0.2.1")
        #expect(PeerAddress(nil).description == "unix")
    }
}
