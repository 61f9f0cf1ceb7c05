import Testing

@testable import Store

@Suite("Store outbox")
struct StoreOutboxTests {
    @Test("after one kind of news is taken, the next of either kind wakes the shard")
    func wakes() {
        let wakes = WakeCount()
        let outbox = StoreOutbox { wakes.add() }
        var tickets: [ClosedRange<UInt64>] = []
        var slices: [QueueSlice] = []
        outbox.complete(1...1, buffers: []) { _ in }
        outbox.deliver(slice)
        #expect(wakes.value == 2)
        outbox.takeCompletions(&tickets)
        // The slice still waits and does not hold completions back.
        outbox.complete(2...2, buffers: []) { _ in }
        #expect(wakes.value == 3)
        outbox.takeSlices(&slices)
        outbox.deliver(slice)
        #expect(wakes.value == 4)
        outbox.takeCompletions(&tickets)
        outbox.takeSlices(&slices)
        #expect(tickets == [1...1, 2...2] && slices.count == 2)
        outbox.takeCompletions(&tickets)
        #expect(tickets.count == 2 && wakes.value == 4)
    }

    @Test("one wake-up is enough until the news is taken")
    func wakesOnce() {
        let wakes = WakeCount()
        let outbox = StoreOutbox { wakes.add() }
        for ticket: UInt64 in 1...10 { outbox.complete(ticket...ticket, buffers: []) { _ in } }
        #expect(wakes.value == 1)
        var tickets: [ClosedRange<UInt64>] = []
        outbox.takeCompletions(&tickets)
        #expect(tickets == [1...10])
    }

    @Test("the shard is woken when the store accepts records again")
    func acceptance() {
        let wakes = WakeCount()
        let outbox = StoreOutbox { wakes.add() }
        outbox.update { $0.isCongested = true }
        #expect(!outbox.isAccepting && wakes.value == 0)
        outbox.update { $0.isBelowReserve = true }
        outbox.update { $0.isCongested = false }
        #expect(!outbox.isAccepting && wakes.value == 0)
        outbox.complete(nil, buffers: []) { $0.isBelowReserve = false }
        #expect(outbox.isAccepting && wakes.value == 1)
    }

    @Test("a commit that takes long is seen while it does")
    func currentCommit() {
        let outbox = StoreOutbox {}
        #expect(outbox.figures.currentCommitMicroseconds == 0)
        outbox.commitBegins(atMicroseconds: 1)
        #expect(outbox.figures.currentCommitMicroseconds > 0)
        outbox.commitEnded()
        #expect(outbox.figures.currentCommitMicroseconds == 0)
        var figures = StoreFigures()
        figures.currentCommitMicroseconds = 11_000_000
        #expect(figures.notReadyReason?.contains("not answered for 11 s") == true)
        #expect(figures.isAccepting)
    }

    @Test("buffers come back, but not the largest")
    func buffers() {
        let outbox = StoreOutbox {}
        let small = [UInt8](repeating: 1, count: 100)
        let large = [UInt8](repeating: 1, count: 2 << 20)
        outbox.complete(nil, buffers: [large, small]) { _ in }
        #expect(outbox.takeBuffer().count == 100)
        #expect(outbox.takeBuffer().isEmpty)
    }

    private var slice: QueueSlice {
        QueueSlice(
            request: QueueRead(
                session: 1, from: 0, below: 1, maxMessages: 1, maxBytes: 1, tag: 0, ticket: 0),
            next: 1, bytes: [])
    }
}
