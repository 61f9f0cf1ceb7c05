import HermesTesting
import Testing

@testable import Store

/// Crashes of the process at any step of any thread, with and without a crash of the machine.
@Suite("Durable store after a crash")
struct DurableCrashTests {
    @Test("everything completed is there, whole and in order", arguments: UInt64(1)...24)
    func crashes(seed: UInt64) throws {
        var life = CrashProgram(seed: seed)
        for _ in 1...5 { try life.live() }
    }

    @Test("two starts without a write in between find no damage", arguments: [0, 1, 3])
    func startsWithoutWrites(messages: Int) throws {
        var folder = DurableFolder()
        for start in 1...4 {
            let store = try SteppedStore(in: folder)
            #expect(store.store.recovery.report.damage == [], "start \(start)")
            if start == 1, messages > 0 {
                for number in 1...UInt64(messages) { store.submit(message: number) }
                store.commit()
            }
            folder = folder.copyAfterCrash()
        }
    }

    @Test("a start serves from the journal, which moves to the database behind its back")
    func servesFromJournal() throws {
        let folder = DurableFolder()
        let store = try SteppedStore(in: folder, options: .small(segmentCount: 8))
        for number: UInt64 in 1...80 {
            store.submit(message: number, payload: 3_000)
            store.commit()
        }
        let segments = store.committer.journal.segmentNumbers.count
        #expect(segments == 6)
        let copy = folder.copyAfterCrash()
        let next = try SteppedStore(in: copy, options: .small(segmentCount: 8))
        #expect(next.store.recovery.waitingMessages == 80 - 1, "the last one is written again")
        #expect(next.store.figures.waitingSegments == segments)
        #expect(next.mover.database.progress.appliedSegment == 0)
        #expect(next.restored.waiting[1]?.messages == 80)
        #expect(next.store.isAccepting)
        var items = try next.wholeQueueItems()
        #expect(items.map(\.position) == Array(1...80))
        // New records come after it, and acknowledged ones are removed from it.
        next.submit(message: 81)
        next.submit([.finished(session: 1, position: 1), .finished(session: 1, position: 50)])
        next.settle()
        #expect(next.store.figures.waitingSegments == 0)
        #expect(next.mover.database.progress.appliedSegment == UInt64(segments))
        items = try next.wholeQueueItems()
        #expect(items.map(\.position) == (2...81).filter { $0 != 50 })
        #expect(items.allSatisfy { $0.payload == testPayload($0.position, $0.payload.count) })
    }

    @Test("positions finished in the journal do not hide the messages after them")
    func readsBehindFinished() throws {
        let folder = DurableFolder()
        let store = try SteppedStore(in: folder)
        for number: UInt64 in 1...200 {
            store.submit(message: number, payload: 3_000)
            store.commit()
            store.move()
        }
        store.settle()
        // The database holds these, and gets the acknowledgements when the segment is full.
        for number: UInt64 in 1...150 { store.submit([.finished(session: 1, position: number)]) }
        store.commit()
        var request = store.wholeQueue
        request.maxMessages = 64
        var slice = try store.read(request)
        #expect(slice.items.first?.position == 151)
        // A start writes them again, to a segment that is not moved.
        let next = try SteppedStore(in: folder.copyAfterCrash())
        next.settle()
        slice = try next.read(request)
        #expect(slice.items.first?.position == 151)
        #expect(slice.next > 151)
    }

    @Test("a segment is not written again while a read needs it")
    func pinnedSegments() throws {
        let store = try SteppedStore(in: DurableFolder())
        for number: UInt64 in 1...30 {
            store.submit(message: number, payload: 3_000)
            store.commit()
        }
        // The read is in progress, and its loader is slow.
        store.store.read(store.wholeQueue)
        store.commit()
        let pinned = store.committer.journal.segments.map(\.file.path)
        for number: UInt64 in 31...300 {
            store.submit(message: number, payload: 3_000)
            store.commit()
            store.move()
        }
        #expect(store.store.figures.waitingSegments < 2, "all but the last are in the database")
        let segments = store.committer.journal.segments.map(\.file.path)
        #expect(Array(segments.prefix(2)) == Array(pinned.prefix(2)))
        #expect(segments.count == 7, "twice as many as there should be, and not more")
        store.load()
        let items = store.slices.flatMap(\.items)
        #expect(items.map(\.position) == Array(1...30))
        #expect(items.allSatisfy { $0.payload == testPayload($0.position, 3_000) })
        // They are returned then, and work continues.
        store.settle()
        #expect(store.completed == Array(1...300))
        #expect(store.committer.journal.segments.count <= 2)
    }

    @Test("tickets for nothing complete in their turn")
    func emptyBatches() throws {
        let store = try SteppedStore(in: DurableFolder())
        store.submit(message: 1)
        store.commit()
        var nothing = WriteBatch(isRecording: false, lastTicket: 1)
        _ = nothing.commit()
        store.store.submit(&nothing)
        store.commit()
        #expect(store.completed == [1, 2])
    }

    @Test("numbers are not given again, even if nothing that had them is left")
    func numbers() throws {
        let folder = DurableFolder()
        let store = try SteppedStore(in: folder)
        store.submit([
            .session(9, clientID: [1], userName: nil), .sessionRemoved(9),
            .message(17, topic: [97], payload: [], qos: 1, retain: false, expiresAtMs: 0),
        ])
        store.commit()
        let copy = folder.copyAfterCrash()
        var visitor = ModelVisitor()
        try DurableStore(directory: copy.path, options: .small()) {}.restore(&visitor)
        #expect(visitor.model.progress.lastSession == 9)
        #expect(visitor.model.progress.lastMessage == 17)
    }
}

/// Runs of a store, each of which ends with a crash at a random step or with a close.
private struct CrashProgram {
    private let seed: UInt64
    private var program: RecordProgram
    private var folder = DurableFolder()
    private let durability: DurableStoreOptions.Durability
    /// The numbers of groups that the next start may find.
    private var allowed: ClosedRange<UInt64> = 0...0
    /// Written and not synced by the former process, so perhaps only in the page cache.
    private var inPageCache: Segment?

    init(seed: UInt64) {
        self.seed = seed
        program = RecordProgram(seed: seed)
        program.finishesUnknown = seed % 3 > 0
        durability = seed % 2 == 0 ? .sync : .interval(milliseconds: 1_000_000)
    }

    mutating func live() throws {
        let store = try SteppedStore(in: folder, options: .small(durability))
        #expect(store.store.recovery.report.damage == [], "replay with seed \(seed)")
        let model = try #require(
            try store.restoredModel(countsAreExact: !program.finishesUnknown))
        let groups = model.groupCount
        #expect(allowed.contains(groups), "replay with seed \(seed)")
        #expect(
            model.comparable == program.model(after: groups)?.comparable,
            "replay with seed \(seed)")
        program.resume(at: groups)

        // Tickets of this run begin with 1; groups count over all runs.
        var synced = groups
        for _ in 1...program.random.number(in: 1...120) {
            try step(store)
            if store.committer.unsyncedBytes == 0 {
                synced = groups + UInt64(store.completed.count)
            }
            #expect(store.completed == Array(1...UInt64(store.completed.count + 1)).dropLast())
        }
        if program.random.once(in: 4) {
            try close(store)
            allowed = program.groupCount...program.groupCount
            inPageCache = nil
            return
        }
        let completed = groups + UInt64(store.completed.count)
        folder = folder.copyAfterCrash()
        allowed = completed...program.groupCount
        let last = store.committer.journal.segments.last
        guard program.random.once(in: 2) else {
            inPageCache = last
            return
        }
        for segment in [inPageCache, last] {
            if let segment { folder.loseUnsynced(segment, &program.random) }
        }
        inPageCache = nil
        allowed = synced...program.groupCount
    }

    private mutating func step(_ store: SteppedStore) throws {
        switch program.random.number(in: 1...10) {
        case 1...4: store.submit(&program, groups: program.random.number(in: 1...8))
        case 5...6: store.commit()
        case 7...8: store.move()
        case 9: store.load()
        default: try read(store)
        }
    }

    /// Reads return everything submitted before.
    private mutating func read(_ store: SteppedStore) throws {
        let sessions = program.model.sessions.keys.sorted()
        guard let session = sessions.randomElement(using: &program.random),
            let end = program.model.sessions[session]?.end
        else { return }
        let slice = try store.read(
            QueueRead(
                session: session, from: 0, below: end + 1,
                maxMessages: program.random.number(in: 1...30), maxBytes: 5_000, tag: seed,
                ticket: 3))
        #expect(slice.failure == nil)
        #expect(
            slice.items
                == program.model.items(of: session, from: 0, below: min(slice.next, end + 1)),
            "replay with seed \(seed)")
    }

    /// Closes the store, so that the next start finds nothing to do.
    private mutating func close(_ store: SteppedStore) throws {
        #expect(store.close(), "replay with seed \(seed)")
        folder = folder.copyAfterCrash()
        let opened = try DurableStore(directory: folder.path, options: .small()) {}
        #expect(opened.recovery.report.frameCount == 0, "replay with seed \(seed)")
    }
}
