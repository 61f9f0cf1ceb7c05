import HermesTesting
import Testing
import Threads

@testable import Store

@Suite("Journal overlay")
struct JournalOverlayTests {
    @Test(
        "database and overlay together equal the model of all records", arguments: UInt64(1)...24)
    func programs(seed: UInt64) throws {
        let parts = try OverlayParts(seed: seed)
        for _ in 1...400 {
            try parts.step()
        }
        try parts.finish()
        let found = try parts.databaseModel()
        #expect(found?.comparable == parts.program.model.comparable, "replay with seed \(seed)")
        #expect(parts.overlay.entries.count == 0)
        #expect(parts.overlay.messages.count == 0)
        #expect(parts.overlay.sessions.count == 0)
        #expect(parts.overlay.sharedFilters.texts.allSatisfy { $0.isEmpty })
        let problems = try DatabaseCheck(directory: parts.folder.path).run()
        #expect(problems == [])
    }

    @Test("a message queued and acknowledged within a segment leaves only the session's state")
    func netChanges() throws {
        var overlay = JournalOverlay(activeSegment: 1, lastSession: 0, lastMessage: 0)
        try overlay.apply([
            .session(1, clientID: [1], userName: nil),
            .message(1, topic: [97], payload: [1, 2], qos: 1, retain: false, expiresAtMs: 0),
            .queued(session: 1, position: 5, message: 1, qos: 1, retain: false, isInWindow: true),
            .finished(session: 1, position: 5),
            .session(2, clientID: [2], userName: nil),
            .sessionRemoved(2),
        ])
        let changes = overlay.seal(next: 2)
        #expect(changes.newSessions.map(\.number) == [1])
        #expect(changes.sessionStates.map(\.end) == [6])
        #expect(changes.queued.isEmpty && changes.messages.isEmpty && changes.finished.isEmpty)
        #expect(changes.removedSessions.isEmpty)
        #expect((changes.lastSession, changes.lastMessage) == (2, 1))
    }

    @Test("acknowledgements out of order become few ranges")
    func ranges() throws {
        var overlay = JournalOverlay(activeSegment: 1, lastSession: 0, lastMessage: 0)
        try overlay.apply([4, 2, 3, 9, 1, 8, 20].map { .finished(session: 1, position: $0) })
        let changes = overlay.seal(next: 2)
        #expect(changes.finished.map { [$0.first, $0.last] } == [[1, 4], [8, 9], [20, 20]])
    }

    @Test(
        "records that contradict each other are refused",
        arguments: [
            // Content of another group, a repeated position, a number that is not new.
            [.queued(session: 1, position: 1, message: 7, qos: 1, retain: false, isInWindow: true)],
            [.retained(message: 7)],
            [.will(session: 1, message: 7)],
            [
                .message(8, topic: [97], payload: [], qos: 1, retain: false, expiresAtMs: 0),
                .queued(
                    session: 1, position: 2, message: 8, qos: 1, retain: false, isInWindow: true),
                .queued(
                    session: 1, position: 2, message: 8, qos: 1, retain: false, isInWindow: true),
            ],
            [.message(7, topic: [97], payload: [], qos: 1, retain: false, expiresAtMs: 0)],
            [.shared(session: 1, position: 1, filter: [97])],
            // An identifier of another group's message, of none, of another one; not behind its
            // message; a second one; too short and too long.
            [.named(7, messageID: [97])],
            [.named(8, messageID: [97])],
            [
                .message(8, topic: [97], payload: [], qos: 1, retain: false, expiresAtMs: 0),
                .named(7, messageID: [97]),
            ],
            [
                .message(8, topic: [97], payload: [], qos: 1, retain: false, expiresAtMs: 0),
                .retained(message: 8), .named(8, messageID: [97]),
            ],
            [
                .message(8, topic: [97], payload: [], qos: 1, retain: false, expiresAtMs: 0),
                .named(8, messageID: [97]), .named(8, messageID: [97]),
            ],
            [
                .message(8, topic: [97], payload: [], qos: 1, retain: false, expiresAtMs: 0),
                .named(8, messageID: []),
            ],
            [
                .message(8, topic: [97], payload: [], qos: 1, retain: false, expiresAtMs: 0),
                .named(8, messageID: [UInt8](repeating: 97, count: 256)),
            ],
        ] as [[StoreRecord]])
    func contradictions(records: [StoreRecord]) throws {
        var overlay = JournalOverlay(activeSegment: 1, lastSession: 0, lastMessage: 0)
        try overlay.apply([
            .message(7, topic: [97], payload: [], qos: 1, retain: false, expiresAtMs: 0)
        ])
        let result = Result { try overlay.apply(records) }
        #expect(throws: DamagedRecord.self) { try result.get() }
    }
}

extension JournalOverlay {
    /// Applies one group.
    fileprivate mutating func apply(_ records: [StoreRecord]) throws {
        var batch = WriteBatch(isRecording: true)
        for record in records { batch.append(record) }
        _ = batch.commit()
        let bytes = batch.takeBytes(leaving: [])
        try bytes.withUnsafeBufferPointer { try apply(UnsafeRawBufferPointer($0), at: 4_120) }
    }
}

/// Journal, overlay and database without threads.
private final class OverlayParts {
    let folder = DurableFolder()
    var program: RecordProgram
    var overlay = JournalOverlay(activeSegment: 1, lastSession: 0, lastMessage: 0)
    private var journal: Journal
    private let database: Database
    private let loader: QueueLoader
    private let seed: UInt64
    private var sealed: [SegmentChanges] = []
    /// Segments that the database holds and the overlay does not know of yet.
    private var reported = 0
    private var ticket: UInt64 = 0
    private var content = SegmentBytes()

    init(seed: UInt64) throws {
        self.seed = seed
        program = RecordProgram(seed: seed)
        database = try Database(directory: folder.path)
        var journal = try Journal(
            directory: folder.journal,
            options: JournalOptions(segmentBytes: 65_536, segmentCount: 3), appliedSegment: 0)
        _ = try journal.replay { _, _, _ in }
        try journal.beginSegment()
        self.journal = journal
        loader = QueueLoader(
            reader: try QueueReader(directory: folder.path), directory: folder.path,
            tasks: try WorkQueue(name: "test"),
            outbox: StoreOutbox {}
        ) { _ in }
    }

    func step() throws {
        switch program.random.number(in: 1...10) {
        case 1...5: try write()
        case 6: if program.random.once(in: 3) { try seal(bytes: 1) }
        case 7: try move()
        case 8: report()
        default: try read()
        }
    }

    func finish() throws {
        try seal(bytes: 1)
        while reported < sealed.count { try move() }
        while reported > 0 { report() }
        try read()
    }

    func databaseModel() throws -> StoreModel? {
        var visitor = ModelVisitor()
        visitor.visit(
            lastSession: database.progress.lastSession, lastMessage: database.progress.lastMessage)
        try database.forEachSession { visitor.visit($0) }
        try database.forEachSubscription { visitor.visit(subscription: $1, of: $0, grant: $2) }
        try database.forEachInbound { visitor.visit(packetIdentifier: $1, of: $0) }
        try database.forEachRetained { visitor.visit(retained: $0) }
        try database.forEachWill { visitor.visit(will: $1, of: $0) }
        try database.forEachFact { _ = visitor.visit($0) }
        let reader = try QueueReader(directory: folder.path)
        for (session, waiting) in visitor.waiting {
            let queue = try StoreModel.queue(session, reader, 5)
            visitor.model.sessions[session]?.queue = queue
            guard queue.count == waiting.messages else { return nil }
        }
        return visitor.model
    }

    private func write() throws {
        var batch = WriteBatch(isRecording: true, lastTicket: ticket)
        for _ in 0..<program.random.number(in: 1...6) { program.addGroup(to: &batch) }
        ticket = batch.lastTicket
        let bytes = batch.takeBytes(leaving: [])
        if journal.isFull(for: bytes.count) { try seal(bytes: bytes.count) }
        let frame = try bytes.withUnsafeBufferPointer { (bytes) throws(StoreFailure) in
            try journal.append([UnsafeRawBufferPointer(bytes)])
        }
        try bytes.withUnsafeBufferPointer { (bytes) throws(DamagedRecord) in
            try overlay.apply(UnsafeRawBufferPointer(bytes), at: frame.payloadOffset)
        }
    }

    private func seal(bytes: Int) throws {
        try journal.beginSegment(payloadBytes: bytes)
        let active = journal.activeSegment
        var changes = overlay.seal(next: try #require(active))
        changes.sort()
        sealed.append(changes)
    }

    /// The step of the mover.
    private func move() throws {
        guard reported < sealed.count else { return }
        let changes = sealed[reported]
        let found = journal.reader(of: changes.segment)
        let reader = try #require(found)
        try database.apply(changes) { (location) throws(StoreFailure) in
            try content.read(location, reader)
        }
        reported += 1
    }

    /// The step of the committer after a move.
    private func report() {
        guard reported > 0 else { return }
        let number = sealed.removeFirst().segment
        overlay.applied(number)
        journal.free(through: number)
        reported -= 1
    }

    /// Reads part of a queue, in windows without other steps between.
    private func read() throws {
        let sessions = program.model.sessions.keys.sorted()
        guard let session = sessions.randomElement(using: &program.random) else { return }
        let end = Int(program.model.sessions[session]?.end ?? 0)
        var from = UInt64(program.random.number(in: 0...end))
        let below = UInt64(program.random.number(in: Int(from)...end + 3))
        for _ in 0...end + 3 {
            guard from < below else { return }
            let request = QueueRead(
                session: session, from: from, below: below,
                maxMessages: program.random.number(in: 1...6),
                maxBytes: program.random.number(in: 0...2_000), tag: 0, ticket: 0)
            let slice = loader.read(LoaderTask(number: 1, request, in: overlay, of: journal))
            let items = slice.items
            #expect(slice.failure == nil)
            #expect(slice.next > from && items.count <= request.maxMessages)
            #expect(
                items
                    == program.model.items(of: session, from: from, below: min(slice.next, below)),
                "replay with seed \(seed)")
            let bytes = items.reduce(0) { $0 + $1.topic.count + $1.payload.count }
            #expect(bytes <= request.maxBytes || items.count == 1)
            from = slice.next
        }
        Issue.record("a queue of \(end) positions was not read in as many windows")
    }
}
