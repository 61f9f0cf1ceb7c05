import Addresses
import BrokerAPI
import Structures
import Testing

@testable import BrokerRuntime

@Suite("Locks after wrong passwords")
struct LockoutsTests {
    private static let phone = IPAddress(ipv4: 0xC000_0207, port: 40_001)
    private static let other = IPAddress(ipv4: 0xC000_0208, port: 40_001)
    private static let loopback = IPAddress(ipv4: 0x7F00_0001, port: 40_001)
    private static let ann = Array("ann".utf8)

    private static func at(_ milliseconds: UInt64) -> MonotonicTime {
        MonotonicTime(milliseconds: 1_000_000 + milliseconds)
    }

    private static func lockouts(_ change: (inout BrokerLimits) -> Void = { _ in }) -> Lockouts {
        var limits = BrokerLimits()
        change(&limits)
        return Lockouts(Lockouts.Limits(limits), hash: KeyedHash(seed: 7))
    }

    @Test("ten wrong passwords lock out the user at the address, for five minutes")
    func pair() {
        var lockouts = Self.lockouts()
        #expect(lockouts.isEmpty)
        for number in 1...9 {
            let begun = lockouts.noteWrong(Self.ann, from: Self.phone, at: Self.at(0))
            #expect(begun == [], "\(number)")
        }
        #expect(lockouts.lock(of: Self.ann, from: Self.phone, at: Self.at(0)) == nil)
        let begun = lockouts.noteWrong(Self.ann, from: Self.phone, at: Self.at(0))
        #expect(begun == [.init(limit: .lockoutAttempts, userName: Self.ann, wrong: 10)])
        #expect(
            lockouts.lock(of: Self.ann, from: Self.phone, at: Self.at(299_999)) == .lockoutAttempts)
        #expect(lockouts.lock(of: Self.ann, from: Self.other, at: Self.at(0)) == nil)
        #expect(lockouts.lock(of: Array("bob".utf8), from: Self.phone, at: Self.at(0)) == nil)
        #expect(lockouts.count(at: Self.at(0)) == 1 && lockouts.begun == 1)
        let shown = lockouts.locks(at: Self.at(1_000), wallClockMs: 5_000_000)
        #expect(
            shown == [
                Lockout(
                    userName: "ann", address: "192.0.2.7", wrongPasswords: 10, untilMs: 5_299_000)
            ])
        // When it is over, the count begins anew.
        #expect(lockouts.lock(of: Self.ann, from: Self.phone, at: Self.at(300_000)) == nil)
        #expect(lockouts.noteWrong(Self.ann, from: Self.phone, at: Self.at(300_000)) == [])
        #expect(lockouts.count(at: Self.at(300_000)) == 0)
    }

    @Test("clients of an address that name no user are locked out with their address alone")
    func nameless() {
        var lockouts = Self.lockouts {
            $0.lockoutAttempts = .number(3)
            $0.lockoutAttemptsPerAddress = .number(5)
        }
        for _ in 0..<4 {
            let begun = lockouts.noteWrong([], from: Self.phone, at: Self.at(0))
            #expect(begun == [])
        }
        #expect(lockouts.lock(of: [], from: Self.phone, at: Self.at(0)) == nil)
        lockouts.noteRight([], from: Self.phone)
        let begun = lockouts.noteWrong([], from: Self.phone, at: Self.at(0))
        #expect(begun == [.init(limit: .lockoutAttemptsPerAddress, userName: nil, wrong: 5)])
        #expect(
            lockouts.lock(of: [], from: Self.phone, at: Self.at(0)) == .lockoutAttemptsPerAddress)
        #expect(lockouts.lock(of: [], from: Self.other, at: Self.at(0)) == nil)
    }

    @Test("wrong passwords add up within the window alone, and a right one ends the count")
    func window() {
        var lockouts = Self.lockouts { $0.lockoutAttempts = .number(3) }
        for round in 0..<4 as Range<UInt64> {
            let start = round * 300_000
            for _ in 0..<2 {
                _ = lockouts.noteWrong(Self.ann, from: Self.phone, at: Self.at(start))
            }
        }
        #expect(lockouts.begun == 0)
        lockouts.noteRight(Self.ann, from: Self.phone)
        for _ in 0..<2 { _ = lockouts.noteWrong(Self.ann, from: Self.phone, at: Self.at(900_001)) }
        #expect(lockouts.begun == 0)
        _ = lockouts.noteWrong(Self.ann, from: Self.phone, at: Self.at(900_002))
        #expect(lockouts.begun == 1)
    }

    @Test("an address that tries a hundred users is locked out for all, whatever account it has")
    func address() {
        var lockouts = Self.lockouts()
        for number in 0..<100 {
            _ = lockouts.noteWrong(Array("user\(number)".utf8), from: Self.phone, at: Self.at(0))
            lockouts.noteRight(Self.ann, from: Self.phone)
        }
        #expect(
            lockouts.lock(of: Self.ann, from: Self.phone, at: Self.at(0))
                == .lockoutAttemptsPerAddress)
        #expect(lockouts.lock(of: Self.ann, from: Self.other, at: Self.at(0)) == nil)
        #expect(lockouts.locks(at: Self.at(0), wallClockMs: 0).map(\.userName) == [nil])
    }

    @Test("loopback has no limit unless it is a number, and off switches off")
    func loopback() {
        var usual = Self.lockouts()
        for _ in 0..<200 { _ = usual.noteWrong(Self.ann, from: Self.loopback, at: Self.at(0)) }
        #expect(usual.isEmpty)
        var asked = Self.lockouts { $0.lockoutAttempts = .number(1) }
        _ = asked.noteWrong(Self.ann, from: Self.loopback, at: Self.at(0))
        #expect(asked.lock(of: Self.ann, from: Self.loopback, at: Self.at(0)) == .lockoutAttempts)
        var off = BrokerLimits()
        off.lockoutAttempts = .off
        asked.limits = Lockouts.Limits(off)
        #expect(asked.lock(of: Self.ann, from: Self.loopback, at: Self.at(0)) == nil)
    }

    @Test("one machine has all addresses of a /64 network")
    func network() {
        var lockouts = Self.lockouts { $0.lockoutAttempts = .number(2) }
        for host in 1...2 as ClosedRange<UInt64> {
            let address = IPAddress(ipv6High: 0x2001_0DB8_0000_0001, low: host, port: 1)
            _ = lockouts.noteWrong(Self.ann, from: address, at: Self.at(0))
        }
        let third = IPAddress(ipv6High: 0x2001_0DB8_0000_0001, low: 3, port: 1)
        #expect(lockouts.lock(of: Self.ann, from: third, at: Self.at(0)) == .lockoutAttempts)
        #expect(lockouts.locks(at: Self.at(0), wallClockMs: 0)[0].address == "2001:db8:0:1::/64")
    }

    @Test("an operator ends the locks of a network, or all")
    func cleared() throws {
        var lockouts = Self.lockouts { $0.lockoutAttempts = .number(1) }
        for address in [Self.phone, Self.other, Self.loopback] {
            _ = lockouts.noteWrong(Self.ann, from: address, at: Self.at(0))
        }
        let network: IPNetwork = try #require(IPNetwork("192.0.2.7"))
        #expect(lockouts.clear(network, at: Self.at(0)) == 1)
        #expect(lockouts.lock(of: Self.ann, from: Self.phone, at: Self.at(0)) == nil)
        #expect(lockouts.lock(of: Self.ann, from: Self.other, at: Self.at(0)) == .lockoutAttempts)
        #expect(lockouts.clear(nil, at: Self.at(0)) == 2)
        #expect(lockouts.count(at: Self.at(0)) == 0)
    }

    @Test("a flood of invented names displaces no lock")
    func flood() {
        var lockouts = Self.lockouts {
            $0.lockoutAttempts = .number(3)
            $0.lockoutAttemptsPerAddress = .off
        }
        for _ in 0..<3 { _ = lockouts.noteWrong(Self.ann, from: Self.phone, at: Self.at(0)) }
        for number in 0..<4 * Lockouts.capacity {
            _ = lockouts.noteWrong(Array("\(number)".utf8), from: Self.other, at: Self.at(1))
        }
        #expect(lockouts.lock(of: Self.ann, from: Self.phone, at: Self.at(2)) == .lockoutAttempts)
        #expect(lockouts.count(at: Self.at(2)) == 1)
    }
}
