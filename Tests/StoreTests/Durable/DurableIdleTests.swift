import Testing

@testable import Store

@Suite("Durable store without writes")
struct DurableIdleTests {
    /// Segments too large for these tests to fill.
    private static func options(idleMilliseconds: UInt64) -> DurableStoreOptions {
        var options = DurableStoreOptions.small()
        options.journal = JournalOptions(segmentBytes: 1 << 20, segmentCount: 3)
        options.idleMilliseconds = idleMilliseconds
        return options
    }

    @Test("after a while the last records are in the database and take no memory")
    func idle() throws {
        let store = try SteppedStore(
            in: DurableFolder(), options: Self.options(idleMilliseconds: 20))
        for number: UInt64 in 1...999 { store.submit(message: number, payload: 10) }
        store.commit()
        #expect(store.committer.overlay.entries.allocatedBytes >= 999 * 32)
        let patience = store.committer.patience
        #expect(patience >= 0 && patience <= 20, "it wakes up for that")
        for _ in 0..<50 where store.store.figures.waitingSegments == 0 {
            _ = store.committer.turn(waitMilliseconds: store.committer.patience)
        }
        #expect(store.store.figures.waitingSegments == 1)
        store.settle()
        #expect(store.committer.overlay.entries.allocatedBytes == 0)
        #expect(store.committer.overlay.messages.allocatedBytes == 0)
        #expect(store.committer.overlay.sessions.allocatedBytes == 0)
        #expect(store.committer.patience == -1, "and sleeps then")
        // Work continues from there.
        #expect(try store.wholeQueueItems().count == 999)
        store.submit(message: 1_000)
        store.submit([.finished(session: 1, position: 1), .finished(session: 1, position: 1_000)])
        store.commit()
        #expect(try store.wholeQueueItems().map(\.position) == Array(2...999))
        #expect(store.close())
    }

    @Test("a segment with little in it stays, and so does one that is written to")
    func busy() throws {
        let store = try SteppedStore(
            in: DurableFolder(), options: Self.options(idleMilliseconds: 0))
        for number: UInt64 in 1...100 { store.submit(message: number, payload: 10) }
        store.commit()
        store.commit()
        #expect(store.store.figures.waitingSegments == 0 && store.committer.patience == -1)

        let other = try SteppedStore(
            in: DurableFolder(), options: Self.options(idleMilliseconds: 3_600_000))
        for number: UInt64 in 1...2_000 { other.submit(message: number, payload: 10) }
        other.commit()
        #expect(other.store.figures.waitingSegments == 0)
        #expect(other.committer.patience > 3_000_000)
    }

    @Test("a segment that still holds something is not given back with the others")
    func keepsActive() throws {
        let store = try SteppedStore(in: DurableFolder())
        for number: UInt64 in 1...60 {
            store.submit(message: number, payload: 3_000)
            store.commit()
            store.move()
        }
        // Records of the open segment are finished, and their places are still known.
        store.settle()
        let position = store.committer.overlay.firstPosition(of: 1)
        let first = try #require(position)
        for number in first...60 { store.submit([.finished(session: 1, position: number)]) }
        store.settle()
        #expect(store.committer.overlay.entries.count == 0)
        for number: UInt64 in 61...120 {
            store.submit(message: number, payload: 3_000)
            store.commit()
            store.move()
        }
        store.settle()
        #expect(
            try store.wholeQueueItems().map(\.position) == Array(1..<first) + Array(61...120))
    }
}
