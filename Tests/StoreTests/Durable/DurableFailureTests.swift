import Glibc
import Synchronization
import Testing

@testable import Store

/// A failing disk: the active segment's descriptor is replaced by a device that fails.
@Suite("Durable store on a disk that fails")
struct DurableFailureTests {
    /// `/dev/full` fails every write; `/dev/null` accepts every write and fails every sync.
    @Test("nothing completes that is not on the disk", arguments: ["/dev/full", "/dev/null"])
    func refusedWrite(device: String) throws {
        let store = try SteppedStore(in: DurableFolder())
        store.submit(message: 1)
        store.commit()
        #expect(store.completed == [1])
        let segment = store.committer.journal.activeSegment

        store.submit(message: 2)
        try store.commitFailing(with: device)
        #expect(store.completed == [1])
        #expect(!store.store.isAccepting)
        let failure = try #require(store.store.figures.failure)
        #expect(store.store.figures.notReadyReason?.contains(failure.description) == true)
        let wakes = store.wakeCount.value

        // The next attempt uses another file, for all waiting records.
        store.submit(message: 3)
        store.commit()
        #expect(store.completed == [1, 2, 3])
        #expect(store.committer.journal.activeSegment != segment)
        #expect(store.store.isAccepting && store.store.figures.failure == nil)
        #expect(store.store.figures.failures == 1)
        #expect(store.wakeCount.value > wakes)
        try expectMessages(3, in: store)
    }

    @Test("records reported early are written again", arguments: ["/dev/full", "/dev/null"])
    func refusedSyncOfInterval(device: String) throws {
        let store = try SteppedStore(
            in: DurableFolder(), options: .small(.interval(milliseconds: 1_000_000)))
        for number: UInt64 in 1...3 {
            store.submit(message: number)
            store.commit()
        }
        #expect(store.completed == [1, 2, 3] && store.committer.unsyncedBytes > 0)
        // Enough bytes for a sync before the interval.
        store.submit(message: 4, payload: 40_000)
        try store.commitFailing(with: device)
        #expect(store.completed == [1, 2, 3])
        #expect(store.store.figures.failure != nil)
        store.commit()
        #expect(store.completed == [1, 2, 3, 4])
        #expect(store.store.figures.failure == nil)
        try expectMessages(4, in: store)
    }

    @Test("messages stored before the disk failed can still be read")
    func readsWhileFailing() throws {
        let store = try SteppedStore(in: DurableFolder())
        store.submit(message: 1)
        store.commit()
        store.store.read(store.wholeQueue)
        store.submit(message: 2)
        store.store.read(store.wholeQueue)
        try store.commitFailing(with: "/dev/full")
        store.load()
        #expect(store.slices.map { $0.items.map(\.position) } == [[1]])
        store.commit()
        store.load()
        #expect(store.slices.map { $0.items.map(\.position) } == [[1], [1, 2]])
    }

    @Test("many small batches that waited become few frames")
    func manyWaiting() throws {
        let store = try SteppedStore(in: DurableFolder())
        store.submit(message: 1)
        store.commit()
        for number: UInt64 in 2...50_000 { store.submit(message: number, payload: 1) }
        try store.commitFailing(with: "/dev/full")
        #expect(store.completed == [1])
        for _ in 0..<4_000 where store.completed.count < 50_000 {
            store.commit()
            store.move()
        }
        #expect(store.completed == Array(1...50_000))
        #expect(store.store.figures.commits < 2_000)
    }

    @Test(
        "a full disk stops only records that need space, and the store recovers by itself",
        .enabled(if: TestVolume.isPermitted))
    func fullDisk() throws {
        let volume = try TestVolume(bytes: 16 << 20)
        let path = volume.path + "/data"
        try #require(mkdir(path, 0o700) == 0)
        var options = DurableStoreOptions.small()
        options.reserveBytes = 256 << 10
        let store = try SteppedStore(at: path, options: options)
        store.submit(message: 1)
        store.settle()
        #expect(store.store.isAccepting)

        try volume.fill()
        store.waitForRoomCheck()
        #expect(store.store.figures.isBelowReserve && !store.store.isAccepting)
        #expect(store.store.figures.notReadyReason?.contains("nearly full") == true)
        // Acknowledgements need no space of their own; existing segments take them.
        for number: UInt64 in 2...20 {
            store.submit(message: number)
            store.commit()
        }
        #expect(store.completed.last == 20)
        // Then neither the journal nor the database has space.
        for number: UInt64 in 21...3_000 {
            store.submit(message: number)
            store.commit()
            store.move()
        }
        #expect(store.completed.last != 3_000)
        #expect(store.store.figures.moverFailure?.kind == .outOfSpace)

        try volume.empty()
        store.waitForRoomCheck()
        store.settle()
        #expect(store.completed == Array(1...3_000))
        #expect(store.store.figures.moverFailure == nil && store.store.isAccepting)
        #expect(store.store.figures.notReadyReason == nil)
        try expectMessages(3_000, in: store)
    }

    @Test("the database falls behind: new messages wait, then everything, then nothing")
    func congestion() throws {
        let store = try SteppedStore(in: DurableFolder(), options: .small(segmentCount: 4))
        var number: UInt64 = 0
        while store.store.isAccepting, number < 10_000 {
            number += 1
            store.submit(message: number, payload: 1_000)
            store.commit()
        }
        #expect(store.store.figures.waitingSegments == 3 && store.store.figures.isCongested)
        #expect(store.completed.last == number)
        // Acknowledgements are still written, in more segments than usual.
        while store.completed.last == number, number < 10_000 {
            number += 1
            store.submit(message: number, payload: 1_000)
            store.commit()
        }
        #expect(store.store.figures.waitingSegments == 8)
        #expect(store.committer.patience == -1, "there is nothing to try again meanwhile")
        #expect(!store.store.isAccepting)
        let wakes = store.wakeCount.value
        store.settle()
        #expect(store.completed.last == number && store.store.isAccepting)
        #expect(store.store.figures.waitingSegments == 0 && store.wakeCount.value > wakes)
        try expectMessages(Int(number), in: store)
    }

    private func expectMessages(_ count: Int, in store: SteppedStore) throws {
        let items = try store.wholeQueueItems()
        #expect(items.map(\.position) == Array(1...UInt64(count)))
        for item in items {
            #expect(item.payload == testPayload(item.position, item.payload.count))
        }
        #expect(store.close())
        let opened = try SteppedStore(at: store.path)
        let model = try #require(try opened.restoredModel())
        #expect(model.sessions[1]?.queue.count == count)
        #expect(opened.store.recovery.report.damage == [])
    }
}

extension SteppedStore {
    var wholeQueue: QueueRead {
        QueueRead(
            session: 1, from: 0, below: .max, maxMessages: 1_000, maxBytes: 10_000_000, tag: 0,
            ticket: 0)
    }

    func wholeQueueItems() throws -> [QueueItem] {
        var items: [QueueItem] = []
        var request = wholeQueue
        while request.from < request.below {
            let slice = try read(request)
            if let failure = slice.failure { throw failure }
            try #require(slice.next > request.from)
            items += slice.items
            request.from = slice.next
        }
        return items
    }

    /// Makes writes or syncs of the active segment fail during the next attempt to commit. Its
    /// descriptor refers to another file meanwhile; its own file keeps its content.
    func commitFailing(with device: String) throws {
        let file = committer.journal.segments.last?.file
        let descriptor = try #require(file).descriptor
        let own = dup(descriptor)
        let other = open(device, O_RDWR | O_CLOEXEC)
        try #require(own >= 0 && other >= 0 && dup2(other, descriptor) == descriptor)
        commit()
        try #require(dup2(own, descriptor) == descriptor)
        _ = Glibc.close(own)
        _ = Glibc.close(other)
    }

    /// Free space is checked once a second.
    func waitForRoomCheck() {
        let before = store.figures.freeBytes
        for _ in 0..<300 where store.figures.freeBytes == before {
            usleep(10_000)
            commit()
        }
    }
}
