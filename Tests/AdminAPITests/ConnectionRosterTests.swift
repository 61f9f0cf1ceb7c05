import Addresses
import NIOCore
import Testing

@testable import AdminAPI

@Suite("Connection roster")
struct ConnectionRosterTests {
    private static func address(_ text: String) -> IPNetwork {
        IPAddress(try? SocketAddress(ipAddress: text, port: 1)).prefix
    }

    private let one = address("192.0.2.1")
    private let other = address("192.0.2.2")
    private let third = address("2001:db8::1")

    /// A roster of `all` places, with strangers' connections from the addresses, in order; each is
    /// named by its position.
    private func roster(
        all: Int = 4, strangers: Int = 1, callersPerAddress: Int = 2, _ addresses: [IPNetwork]
    ) -> ConnectionRoster<Int> {
        var roster = ConnectionRoster<Int>(
            ConnectionPlaces(
                all: all, strangers: strangers, callersPerAddress: callersPerAddress))
        for (id, address) in addresses.enumerated() {
            #expect(roster.admit(id, from: address) == .admit(displacing: nil))
        }
        return roster
    }

    @Test("the address with the most strangers gives up its oldest")
    func greedyAddress() {
        var roster = roster([one, other, other, other])
        #expect(roster.admit(10, from: one) == .admit(displacing: 1))
        // Two each: the oldest of all.
        #expect(roster.admit(11, from: third) == .admit(displacing: 0))
    }

    @Test("among equals the oldest stranger goes, whatever its address")
    func oldest() {
        var roster = roster([one, other, third, Self.address("192.0.2.3")])
        #expect(roster.admit(10, from: Self.address("192.0.2.4")) == .admit(displacing: 0))
        #expect(roster.admit(11, from: Self.address("192.0.2.5")) == .admit(displacing: 1))
        #expect(roster.count == 4)
    }

    @Test("an address that floods displaces nobody but itself")
    func flood() {
        var roster = roster(all: 8, [one, third])
        #expect(roster.trust(0) == .admit(displacing: nil))
        for id in 10..<10_000 {
            let outcome = roster.admit(id, from: other)
            #expect(outcome == .admit(displacing: id < 16 ? nil : id - 6))
        }
        #expect(roster.count == 8)
    }

    @Test("a caller gives way to no stranger")
    func callersStay() {
        var roster = roster([one, one, other, other])
        #expect(roster.trust(0) == .admit(displacing: nil))
        #expect(roster.trust(1) == .admit(displacing: nil))
        roster.setBusy(0, false)
        #expect(roster.admit(10, from: third) == .admit(displacing: 2))
        #expect(roster.admit(11, from: third) == .admit(displacing: 3))
        #expect(roster.admit(12, from: third) == .admit(displacing: 10))
    }

    @Test("one caller too many takes the place of the one that is idle for longest")
    func longestIdle() {
        var roster = roster([one, other, third, third])
        for id in 0...2 { #expect(roster.trust(id) == .admit(displacing: nil)) }
        #expect(roster.trust(3) == .refuse)
        roster.setBusy(2, false)
        roster.setBusy(0, false)
        roster.setBusy(2, true)
        #expect(roster.trust(3) == .admit(displacing: 0))
        #expect(roster.count == 3)
    }

    @Test("callers of one address have a share, of which each newcomer displaces an idle one")
    func share() {
        var roster = roster(all: 8, [one, one, one, other])
        for id in [0, 1, 3] { #expect(roster.trust(id) == .admit(displacing: nil)) }
        roster.setBusy(3, false)
        #expect(roster.trust(2) == .refuse)
        roster.setBusy(1, false)
        #expect(roster.trust(2) == .admit(displacing: 1))
    }

    @Test("loopback has no share: whole offices are behind a proxy of this machine")
    func loopback() {
        let local = Self.address("127.0.0.1")
        var roster = roster([local, local, local, local])
        for id in 0...2 { #expect(roster.trust(id) == .admit(displacing: nil)) }
        #expect(roster.trust(3) == .refuse)
        #expect(Self.address("::1").isLoopback)
        #expect(!one.isLoopback && !third.isLoopback)
    }

    @Test("a caller whose token is no longer good is a stranger again")
    func distrust() {
        var roster = roster([one, one, one, one])
        #expect(roster.trust(0) == .admit(displacing: nil))
        roster.distrust(0)
        roster.distrust(1)
        #expect(roster.admit(10, from: other) == .admit(displacing: 0))
        #expect(roster.trust(10) == .admit(displacing: nil))
    }

    @Test("who needs no place, or has one, is let be")
    func nothingToDo() {
        var roster = roster([one, one, one])
        #expect(roster.trust(0) == .admit(displacing: nil))
        #expect(roster.trust(0) == .admit(displacing: nil))
        #expect(roster.trust(99) == .admit(displacing: nil))
        roster.setBusy(1, true)
        roster.setBusy(99, true)
        roster.remove(99)
        roster.remove(0)
        #expect(roster.trust(1) == .admit(displacing: nil))
        #expect(roster.trust(2) == .admit(displacing: nil))
        #expect(roster.count == 2)
    }

    @Test("a stranger that does not wait for answers waits for them, a caller does not")
    func pipelining() {
        var roster = roster([one, one])
        #expect(!roster.mustWait(0))
        roster.notePipelining(0)
        roster.notePipelining(99)
        #expect(roster.mustWait(0))
        #expect(!roster.mustWait(1) && !roster.mustWait(99))
        #expect(roster.trust(0) == .admit(displacing: nil))
        #expect(!roster.mustWait(0))
        roster.distrust(0)
        #expect(roster.mustWait(0))
    }

    @Test("where there are no strangers, the longest idle caller makes room, or nobody does")
    func onlyCallers() {
        var roster = roster(all: 2, strangers: 0, [one, one])
        #expect(roster.trust(0) == .admit(displacing: nil))
        #expect(roster.trust(1) == .admit(displacing: nil))
        #expect(roster.admit(10, from: one) == .refuse)
        roster.setBusy(1, false)
        #expect(roster.admit(10, from: one) == .admit(displacing: 1))
    }
}
