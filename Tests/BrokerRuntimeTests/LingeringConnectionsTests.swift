import Structures
import Testing

@testable import BrokerRuntime

@Suite("Closed connections whose peers still read")
struct LingeringConnectionsTests {
    private func time(_ milliseconds: UInt64) -> MonotonicTime {
        MonotonicTime(milliseconds: milliseconds)
    }

    private func handle(_ index: UInt32, _ generation: UInt32 = 1) -> Handle {
        Handle(index: index, generation: generation)
    }

    /// Takes all whose time is over.
    private func expire(
        _ lingering: inout LingeringConnections, at milliseconds: UInt64
    ) -> [LingeringConnections.Connection] {
        var ended: [LingeringConnections.Connection] = []
        while let next = lingering.popExpired(now: time(milliseconds)) { ended.append(next) }
        return ended
    }

    @Test("each ends at its time, unless it was removed; its address's key comes with it")
    func deadlines() {
        var lingering = LingeringConnections()
        #expect(lingering.nextDeadline == nil)
        for index in UInt32(0)..<4 {
            lingering.add(handle(index), origin: index + 10, until: time(UInt64(100 + index)))
        }
        #expect(lingering.nextDeadline == time(100))
        let early = expire(&lingering, at: 99)
        #expect(early.isEmpty)
        lingering.remove(handle(1))
        let finishes = (lingering.finish(handle(2)), lingering.finish(handle(2)))
        #expect(finishes == (true, false), "its direction ends once")
        let ended = expire(&lingering, at: 102)
        #expect(ended.map(\.handle) == [handle(0), handle(2)])
        #expect(ended.map(\.origin) == [10, 12])
        #expect(ended.map(\.isFinished) == [false, true])
        #expect(lingering.nextDeadline == time(103))
        #expect(lingering.origin(of: handle(3)) == 13)
        #expect(expire(&lingering, at: 103).map(\.handle) == [handle(3)])
        #expect(lingering.nextDeadline == nil)
    }

    @Test("a handle of an earlier connection at the index finds nothing")
    func stale() {
        var lingering = LingeringConnections()
        lingering.add(handle(0, 2), origin: 1, until: time(100))
        #expect(lingering.origin(of: handle(0, 1)) == nil)
        let finishes = lingering.finish(handle(0, 1))
        #expect(!finishes)
        // Its successor lingers when the first one's time is over.
        lingering.remove(handle(0, 2))
        lingering.add(handle(0, 3), origin: 2, until: time(200))
        #expect(expire(&lingering, at: 150).isEmpty)
        #expect(expire(&lingering, at: 200).map(\.handle) == [handle(0, 3)])
    }
}
