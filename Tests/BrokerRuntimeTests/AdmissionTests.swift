import Addresses
import BrokerAPI
import Structures
import Testing
import Transport

@testable import BrokerRuntime

private func ms(_ milliseconds: UInt64) -> MonotonicTime {
    MonotonicTime(milliseconds: milliseconds)
}

/// A reference to an ``Admission``, because `#expect` cannot call mutating methods.
private final class Gate {
    var value = Admission(Admission.Limits(BrokerLimits()), hash: KeyedHash(seed: 5))

    func admit(
        _ peer: IPAddress, isSecured: Bool, _ settings: BrokerLimits, now: MonotonicTime
    ) -> Admission.Verdict {
        value.limits = Admission.Limits(settings)
        return value.admit(peer, isSecured: isSecured, now: now)
    }

    func takeToken(_ settings: BrokerLimits, now: MonotonicTime) -> Bool {
        value.limits = Admission.Limits(settings)
        return value.takeToken(now: now)
    }

    func nextToken(_ settings: BrokerLimits, now: MonotonicTime) -> MonotonicTime {
        value.limits = Admission.Limits(settings)
        return value.nextToken(now: now)
    }

    func leave(_ key: UInt32) { value.leave(key) }
    func endHandshake(_ key: UInt32) { value.endHandshake(key) }
    func putTokenBack() { value.putTokenBack() }
    var addressCount: Int { value.addressCount }
}

@Suite("Admission by address")
struct AdmissionTests {
    private static let phone = IPAddress(ipv4: 0xC000_0207, port: 40_001)
    private static let loopback = IPAddress(ipv4: 0x7F00_0001, port: 40_001)

    /// One machine may have all addresses of a /64.
    private static func six(_ network: UInt64, _ host: UInt64) -> IPAddress {
        IPAddress(ipv6High: 0x2001_0DB8_0000_0000 | network, low: host, port: 1)
    }

    private static func key(_ verdict: Admission.Verdict) throws -> UInt32 {
        guard case .admitted(let key) = verdict else { throw Refused(verdict) }
        return key
    }

    private struct Refused: Error {
        let verdict: Admission.Verdict
        init(_ verdict: Admission.Verdict) { self.verdict = verdict }
    }

    @Test("connections of one address: up to the limit, and again when one has closed")
    func connections() throws {
        var settings = BrokerLimits()
        settings.connectionsPerAddress = .number(3)
        settings.connectRatePerAddress = .off
        let admission = Gate()
        var keys: [UInt32] = []
        for port in 1...UInt16(3) {
            let peer = IPAddress(ipv4: 0xC000_0207, port: port)
            keys.append(
                try Self.key(admission.admit(peer, isSecured: false, settings, now: ms(0))))
        }
        #expect(Set(keys).count == 1)
        #expect(
            admission.admit(Self.phone, isSecured: false, settings, now: ms(0))
                == .refused(.connectionsPerAddress))
        let other = IPAddress(ipv4: 0xC000_0208, port: 1)
        let otherKey = try Self.key(admission.admit(other, isSecured: false, settings, now: ms(0)))
        #expect(otherKey != keys[0] && admission.addressCount == 2)
        admission.leave(keys[0])
        _ = try Self.key(admission.admit(Self.phone, isSecured: false, settings, now: ms(0)))
        for key in [keys[0], keys[0], keys[0], otherKey] { admission.leave(key) }
        #expect(admission.addressCount == 0)
    }

    @Test("the /64 network of IPv6 is one address, and IPv4 within IPv6 is IPv4")
    func networks() throws {
        var settings = BrokerLimits()
        settings.connectionsPerAddress = .number(1)
        let admission = Gate()
        _ = try Self.key(admission.admit(Self.six(7, 1), isSecured: false, settings, now: ms(0)))
        #expect(
            admission.admit(Self.six(7, .max), isSecured: false, settings, now: ms(0))
                == .refused(.connectionsPerAddress))
        _ = try Self.key(admission.admit(Self.six(8, 1), isSecured: false, settings, now: ms(0)))

        let mapped = IPAddress(ipv6High: 0, low: 0xFFFF_C000_0207, port: 9)
        _ = try Self.key(admission.admit(mapped, isSecured: false, settings, now: ms(0)))
        #expect(
            admission.admit(Self.phone, isSecured: false, settings, now: ms(0))
                == .refused(.connectionsPerAddress))
    }

    @Test("auto is half of the total limit, and no limit on loopback")
    func auto() throws {
        var settings = BrokerLimits()
        settings.maxConnections = 10
        settings.maxHandshakes = 4
        settings.connectRate = 6
        let admission = Gate()
        var keys: [UInt32] = []
        for round in 0..<3 {
            keys.append(
                try Self.key(
                    admission.admit(Self.phone, isSecured: round > 0, settings, now: ms(0))))
        }
        #expect(
            admission.admit(Self.phone, isSecured: true, settings, now: ms(0))
                == .refused(.handshakesPerAddress))
        #expect(
            admission.admit(Self.phone, isSecured: false, settings, now: ms(0))
                == .refused(.connectRatePerAddress))
        admission.endHandshake(keys[0])
        for _ in 0..<2 {
            keys.append(
                try Self.key(
                    admission.admit(Self.phone, isSecured: false, settings, now: ms(1_000))))
        }
        #expect(
            admission.admit(Self.phone, isSecured: false, settings, now: ms(2_000))
                == .refused(.connectionsPerAddress))
        for local in [Self.loopback, IPAddress(ipv6High: 0, low: 1, port: 1)] {
            for _ in 0..<20 {
                _ = try Self.key(admission.admit(local, isSecured: true, settings, now: ms(0)))
            }
        }
        // A number applies to all addresses.
        settings.connectionsPerAddress = .number(20)
        #expect(
            admission.admit(Self.loopback, isSecured: false, settings, now: ms(0))
                == .refused(.connectionsPerAddress))
    }

    @Test("a connection rejected for its number takes no token of its address")
    func tokens() throws {
        var settings = BrokerLimits()
        settings.connectionsPerAddress = .number(1)
        settings.connectRatePerAddress = .number(2)
        let admission = Gate()
        let key = try Self.key(
            admission.admit(Self.phone, isSecured: false, settings, now: ms(0)))
        for _ in 0..<5 {
            #expect(
                admission.admit(Self.phone, isSecured: false, settings, now: ms(0))
                    == .refused(.connectionsPerAddress))
        }
        admission.leave(key)
        _ = try Self.key(admission.admit(Self.phone, isSecured: false, settings, now: ms(0)))
    }

    @Test(
        "a flood of IPv6 networks neither stay in memory nor make one forgotten that has connections"
    )
    func flood() throws {
        var settings = BrokerLimits()
        settings.connectionsPerAddress = .number(2)
        settings.connectRatePerAddress = .number(2)
        let admission = Gate()
        for _ in 0..<2 {
            _ = try Self.key(admission.admit(Self.phone, isSecured: false, settings, now: ms(0)))
        }
        for network in 0..<UInt64(300_000) {
            let key = try Self.key(
                admission.admit(Self.six(network, 1), isSecured: false, settings, now: ms(0)))
            admission.leave(key)
        }
        #expect(admission.addressCount == 1)
        #expect(
            admission.admit(Self.phone, isSecured: false, settings, now: ms(0))
                == .refused(.connectionsPerAddress))
    }

    @Test("newcomers of all addresses wait for their tokens; off waits for nothing")
    func rate() {
        var settings = BrokerLimits()
        settings.connectRate = 200
        let admission = Gate()
        for _ in 0..<200 { #expect(admission.takeToken(settings, now: ms(0))) }
        #expect(!admission.takeToken(settings, now: ms(0)))
        // Two at a time: a hundredth of the rate.
        #expect(admission.nextToken(settings, now: ms(0)) == ms(10))
        for _ in 0..<2 { #expect(admission.takeToken(settings, now: ms(10))) }
        #expect(!admission.takeToken(settings, now: ms(10)))
        admission.putTokenBack()
        #expect(admission.takeToken(settings, now: ms(10)))
        settings.connectRate = nil
        #expect(admission.takeToken(settings, now: ms(10)))
        #expect(admission.nextToken(settings, now: ms(10)) == ms(10))
    }
}
