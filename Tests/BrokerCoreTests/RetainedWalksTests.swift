import MQTTCodec
import Structures
import Testing

@testable import BrokerCore

/// Requests of very many subscriptions, and of very many sessions, for retained messages.
@Suite("Requests for retained messages")
struct RetainedWalksTests {
    private static let count = 100_000
    private let pool = BytePool()

    private func makeWalks() -> RetainedWalks {
        RetainedWalks(hash: KeyedHash(seed: 1), pool: pool)
    }

    private static func filter(_ number: Int) -> [UInt8] {
        Array("a filter of client \(number)".utf8)
    }

    private func add(_ walks: inout RetainedWalks, _ session: UInt32, _ numbers: some Sequence<Int>)
    {
        for number in numbers {
            Self.filter(number).withUnsafeBytes { walks.add(session, $0, .atLeastOnce) }
        }
    }

    @Test("each is served once and in order, whatever was repeated or unsubscribed meanwhile")
    func order() throws {
        var walks = makeWalks()
        add(&walks, 7, 0..<Self.count)
        add(&walks, 7, [5, 50])
        for number in 0..<Self.count where number % 10 != 0 {
            let walk = Self.filter(number).withUnsafeBytes { walks.cancel(7, $0) }
            #expect(walk == nil)
        }
        let places = walks.turnCount
        #expect(places == 1)
        let taken = walks.takeJob(inTurn: 0)
        var job = try #require(taken)
        for number in stride(from: 0, to: Self.count, by: 10) {
            let request = walks.nextRequest(of: &job)
            #expect(request?.filter == Self.filter(number))
        }
        let last = walks.nextRequest(of: &job)
        #expect(last == nil)
        walks.endSlice(7, job, .finished)
        walks.endTurn(served: 1)
        let (hasWork, count) = (walks.hasWork, walks.count)
        #expect(!hasWork && count == 0)
    }

    @Test("what a session leaves behind is freed in slices, and the next one has nothing of it")
    func freed() throws {
        let before = pool.bytesInUse
        var walks = makeWalks()
        add(&walks, 7, 0..<Self.count)
        let full = pool.bytesInUse
        let walk = walks.cancel(7)
        let count = walks.count
        #expect(walk == nil && count == 0)
        #expect(pool.bytesInUse == full, "nothing is freed at once")
        add(&walks, 7, [3])
        var turns = 0
        while pool.bytesInUse > before + 64 {
            let before = pool.bytesInUse
            _ = walks.beginTurn()
            #expect(before - pool.bytesInUse <= 1_024 * 48)
            turns += 1
            try #require(turns < 1_000)
        }
        #expect(turns > 90)
        let places = walks.turnCount
        #expect(places == 2)
        let stale = walks.takeJob(inTurn: 0)
        #expect(stale == nil)
        let taken = walks.takeJob(inTurn: 1)
        var job = try #require(taken)
        let (first, second) = (walks.nextRequest(of: &job), walks.nextRequest(of: &job))
        #expect(first?.filter == Self.filter(3) && second == nil)
    }

    @Test("when the store accepts messages again, stalled sessions are looked at in slices")
    func resumed() throws {
        var walks = makeWalks()
        for session in 0..<3_000 as Range<UInt32> {
            add(&walks, session, [1])
            let walk = walks.suspend(session)
            #expect(walk == nil)
        }
        walks.endTurn(served: 3_000)
        let hasWork = walks.hasWork
        #expect(!hasWork)
        walks.letGoOn()
        var found: Set<UInt32> = []
        while walks.hasWork {
            let some = walks.beginTurn()
            #expect(some.count <= 1_024)
            for session in some {
                let isStalled = walks.isStalled(session)
                #expect(isStalled)
            }
            found.formUnion(some)
        }
        #expect(found.count == 3_000)
        walks.resume(5)
        let taken = walks.takeJob(inTurn: 0)
        let places = walks.turnCount
        #expect(places == 1 && taken != nil)
    }
}
