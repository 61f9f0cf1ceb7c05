import Testing

@testable import Store

@Suite("QueueReader")
struct QueueReaderTests {
    private let folder = DatabaseFolder()
    private let database: Database

    /// Session 1 holds positions 1 to 9 and 20, each with a topic of 1 byte and a payload of 99
    /// bytes. Position 3 is released; the message of 5 is also at position 1 of session 2.
    init() throws {
        database = try Database(directory: folder.path)
        var segment = SegmentBuilder(1)
        segment.session(1, "one")
        segment.session(2, "two")
        segment.state(1, horizon: 4, end: 21)
        segment.state(2, end: 2)
        for position in Array(UInt64(1)...9) + [20] {
            segment.message(
                position, topic: [UInt8(ascii: "t")],
                payload: [UInt8](repeating: UInt8(position), count: 99), qos: 2, retain: true,
                expiresAtMs: 77)
            segment.queued(
                1, position, message: position, qos: UInt8(position % 2 + 1),
                isReleased: position == 3)
        }
        segment.queued(2, 1, message: 5)
        try segment.apply(to: database)
    }

    private func read(
        _ session: UInt64 = 1, from: UInt64 = 0, below: UInt64 = .max,
        finished: [ClosedRange<UInt64>] = [], maxMessages: Int = 100, maxBytes: Int = 100_000
    ) throws -> (window: QueueReader.Window, records: [StoreRecord]) {
        let reader = try QueueReader(directory: folder.path)
        var batch = WriteBatch(isRecording: true)
        let window = try reader.read(
            session: session, from: from, below: below, without: finished,
            maxMessages: maxMessages, maxBytes: maxBytes, into: &batch)
        return (window, batch.groups().flatMap(\.records))
    }

    private func positions(_ records: [StoreRecord]) -> [UInt64] {
        records.compactMap {
            guard case .queued(_, let position, _, _, _, _) = $0 else { return nil }
            return position
        }
    }

    @Test("a row becomes its message and its place; a released one has no content")
    func records() throws {
        let (window, records) = try read(from: 2, below: 4)
        #expect(window == QueueReader.Window(messages: 2, bytes: 100, next: 4, hasMore: false))
        #expect(
            records == [
                .message(
                    2, topic: [UInt8(ascii: "t")], payload: [UInt8](repeating: 2, count: 99),
                    qos: 2, retain: true, expiresAtMs: 77),
                .queued(
                    session: 1, position: 2, message: 2, qos: 1, retain: false, isInWindow: false),
                .message(3, topic: [], payload: [], qos: 0, retain: false, expiresAtMs: 0),
                .queued(
                    session: 1, position: 3, message: 3, qos: 2, retain: false, isInWindow: false),
                .released(session: 1, position: 3),
            ])
    }

    @Test("a shared message is read through each of its queues")
    func shared() throws {
        let mine = try read(from: 5, below: 6).records.first
        let theirs = try read(2).records.first
        #expect(mine == theirs)
        guard case .message(5, _, let payload, _, _, _) = theirs else {
            Issue.record("read \(String(describing: theirs))")
            return
        }
        #expect(payload.count == 99)
    }

    @Test("windows end at the number of messages, at the bytes, and at the bound")
    func bounds() throws {
        let few = try read(maxMessages: 4)
        #expect(positions(few.records) == [1, 2, 3, 4])
        #expect(few.window == .init(messages: 4, bytes: 300, next: 5, hasMore: true))

        let bytes = try read(from: 4, maxBytes: 299)
        #expect(positions(bytes.records) == [4, 5])
        #expect(bytes.window == .init(messages: 2, bytes: 200, next: 6, hasMore: true))

        let exact = try read(from: 4, below: 6, maxMessages: 2, maxBytes: 200)
        #expect(positions(exact.records) == [4, 5])
        #expect(exact.window.hasMore == false)
        #expect(exact.window.next == 6)

        let gap = try read(from: 9, maxMessages: 1)
        #expect(gap.window == .init(messages: 1, bytes: 100, next: 20, hasMore: true))
    }

    @Test("the first message is taken, however large")
    func oversized() throws {
        let (window, records) = try read(from: 6, maxBytes: 10)
        #expect(positions(records) == [6])
        #expect(window == .init(messages: 1, bytes: 100, next: 7, hasMore: true))
    }

    @Test(
        "finished positions count neither as messages nor as bytes",
        arguments: [
            [1...3, 5...5], [0...3, 5...5, 7...30], [UInt64.min...UInt64.max], [3...3, 4...6],
        ])
    func finished(ranges: [ClosedRange<UInt64>]) throws {
        let left = (Array(UInt64(1)...9) + [20]).filter { position in
            !ranges.contains { $0.contains(position) }
        }
        var found: [UInt64] = []
        var from: UInt64 = 0
        for _ in 0...left.count where from < .max {
            let (window, records) = try read(from: from, finished: ranges, maxMessages: 2)
            #expect(window.messages == min(2, left.count - found.count))
            found += positions(records)
            from = window.next
        }
        #expect(found == left)
        #expect(from == .max)
    }

    @Test("a long run of finished positions is skipped by a search, including its last position")
    func longFinished() throws {
        var segment = SegmentBuilder(2)
        segment.state(1, end: 200)
        for position: UInt64 in 21...199 {
            segment.message(position, topic: [1], payload: [2])
            segment.queued(1, position, message: position)
        }
        try segment.apply(to: database)
        let (window, records) = try read(from: 9, finished: [20...197], maxMessages: 2)
        #expect(positions(records) == [9, 198])
        #expect(window.next == 199)
        #expect(try positions(read(from: 9, finished: [20...199]).records) == [9])
    }

    @Test("an empty queue and an unknown session have nothing")
    func nothing() throws {
        for window in [try read(from: 21).window, try read(99).window] {
            #expect(window == .init(messages: 0, bytes: 0, next: .max, hasMore: false))
        }
    }

    @Test("a reader sees the commits before its begin, and never blocks the writer")
    func concurrency() throws {
        let reader = try QueueReader(directory: folder.path)
        var batch = WriteBatch(isRecording: true)
        let first = try reader.read(
            session: 1, from: 0, below: .max, maxMessages: 2, maxBytes: 1_000, into: &batch)
        #expect(first.hasMore)
        var segment = SegmentBuilder(2)
        segment.finished(1, 0...9)
        try segment.apply(to: database)
        #expect(
            try database.checkpoint().isComplete,
            "no statement of the reader keeps its snapshot open")
        let second = try reader.read(
            session: 1, from: first.next, below: .max, maxMessages: 9, maxBytes: 1_000,
            into: &batch)
        #expect(second == .init(messages: 1, bytes: 100, next: .max, hasMore: false))
    }

    @Test("a row without its shared message is damage, reported with both numbers")
    func missingMessage() throws {
        try database.connection.execute("DELETE FROM messages", "test")
        let failure = #expect(throws: StoreFailure.self) { _ = try read(2) }
        #expect(failure?.kind == .damaged)
        #expect(failure?.reason == "message 5, which waits for session 2, is not in it")
    }
}
