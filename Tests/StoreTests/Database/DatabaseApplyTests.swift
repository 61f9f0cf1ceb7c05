import HermesTesting
import Testing

@testable import Store

@Suite("Database: taking segments in")
struct DatabaseApplyTests {
    private let folder = DatabaseFolder()

    private func rows(_ table: String, in database: Database) throws -> Int64 {
        try database.connection.number("SELECT count(*) FROM \(table)", "read")
    }

    @Test("a message for one session lies in its queue, one for several in messages")
    func placesContent() throws {
        let database = try Database(directory: folder.path)
        var segment = SegmentBuilder(1)
        for session in UInt64(1)...2 {
            segment.session(session, "client-\(session)")
            segment.state(session, end: 3)
        }
        segment.message(1, "a", "for one")
        segment.message(2, "b", "for both")
        segment.queued(1, 1, message: 1)
        segment.queued(1, 2, message: 2)
        segment.queued(2, 1, message: 2)
        try segment.apply(to: database)
        #expect(try rows("messages", in: database) == 1)
        #expect(try rows("queue WHERE topic IS NOT NULL", in: database) == 1)

        var second = SegmentBuilder(2)
        second.finished(1, 1...2)
        try second.apply(to: database)
        #expect(try rows("messages", in: database) == 1, "session 2 still waits for it")

        var third = SegmentBuilder(3)
        third.finished(2, 0...9)
        try third.apply(to: database)
        #expect(try rows("messages", in: database) == 0)
        #expect(try rows("queue", in: database) == 0)
    }

    @Test("a message is deleted with the last reference: queue row, retained message or will")
    func references() throws {
        let database = try Database(directory: folder.path)
        var segment = SegmentBuilder(1)
        segment.session(1, "one")
        segment.state(1, end: 2)
        segment.message(1, "t", "x")
        segment.queued(1, 1, message: 1, qos: 2)
        segment.retained("t", message: 1)
        segment.will(1, message: 1)
        try segment.apply(to: database)
        #expect(try rows("messages WHERE reference_count = 3", in: database) == 1)

        var released = SegmentBuilder(2)
        released.released(1, 1...1)
        try released.apply(to: database)
        #expect(try rows("messages WHERE reference_count = 2", in: database) == 1)

        var replaced = SegmentBuilder(3)
        replaced.message(2, "t", "y")
        replaced.retained("t", message: 2)
        try replaced.apply(to: database)
        #expect(try rows("messages WHERE number = 1 AND reference_count = 1", in: database) == 1)

        var removed = SegmentBuilder(4)
        removed.changes.removedSessions = [1]
        removed.retained("t", message: nil)
        try removed.apply(to: database)
        for table in ["messages", "queue", "wills", "retained", "sessions"] {
            #expect(try rows(table, in: database) == 0, "\(table)")
        }
    }

    @Test("a removed session takes everything that is keyed by it, and nothing else")
    func removedSession() throws {
        let database = try Database(directory: folder.path)
        var segment = SegmentBuilder(1)
        for session in UInt64(1)...2 {
            segment.session(session, "client-\(session)")
            segment.state(session, end: 2)
            segment.message(session, "t", "x")
            segment.queued(session, 1, message: session)
            segment.subscription(session, "a/#", qos: 1)
            segment.inbound(session, 7)
        }
        segment.message(3, "w", "gone")
        segment.will(1, message: 3)
        try segment.apply(to: database)

        var second = SegmentBuilder(2)
        second.changes.removedSessions = [1]
        // Another session takes the client identifier over within the same segment.
        second.session(3, "client-1")
        try second.apply(to: database)
        for table in ["queue", "subscriptions", "inbound"] {
            #expect(try rows(table, in: database) == 1, "\(table)")
            #expect(try rows("\(table) WHERE session = 2", in: database) == 1, "\(table)")
        }
        #expect(try rows("wills", in: database) == 0)
        #expect(try rows("messages", in: database) == 0)
        #expect(try rows("sessions", in: database) == 2)
    }

    @Test("a segment that is in already changes nothing, also after a restart")
    func repeated() throws {
        var segment = SegmentBuilder(5)
        segment.session(1, "one")
        segment.state(1, end: 2)
        segment.message(1, "t", "x")
        segment.queued(1, 1, message: 1)
        do {
            let database = try Database(directory: folder.path)
            #expect(try segment.apply(to: database))
            #expect(try !segment.apply(to: database))
        }
        let database = try Database(directory: folder.path)
        #expect(
            database.progress
                == Database.Progress(appliedSegment: 5, lastSession: 1, lastMessage: 1))
        #expect(try !segment.apply(to: database))
        #expect(try rows("queue", in: database) == 1)
        #expect(try DatabaseCheck(directory: folder.path).run() == [])
    }

    @Test("a payload of many megabytes is asked for in slices")
    func largePayload() throws {
        let database = try Database(directory: folder.path)
        var segment = SegmentBuilder(1)
        segment.session(1, "one")
        segment.state(1, end: 2)
        let payload = (0..<5_000_001).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 7) }
        segment.message(9, topic: Array("large".utf8), payload: payload)
        segment.queued(1, 1, message: 9)
        try segment.apply(to: database, largestRead: 330_000)
        let reader = try QueueReader(directory: folder.path)
        let rows = try StoreModel.queue(1, reader, 1)
        #expect(rows[1]?.message.payload == payload)
    }

    @Test("a segment that refers to content it does not hold is refused, and nothing of it is in")
    func missingContent() throws {
        let database = try Database(directory: folder.path)
        var segment = SegmentBuilder(1)
        segment.session(1, "one")
        segment.queued(1, 1, message: 8)
        let failure = #expect(throws: StoreFailure.self) { try segment.apply(to: database) }
        #expect(failure?.kind == .damaged)
        #expect(failure?.description.contains("message 8") == true)
        #expect(try rows("sessions", in: database) == 0)
        #expect(database.progress.appliedSegment == 0)
    }
}
