import Testing

@testable import Store

@Suite("DatabaseCheck")
struct DatabaseCheckTests {
    private let folder = DatabaseFolder()
    private let database: Database

    /// Two sessions with every kind of state.
    init() throws {
        database = try Database(directory: folder.path)
        var segment = SegmentBuilder(1)
        for session in UInt64(1)...2 {
            segment.session(session, "client-\(session)")
            segment.state(session, horizon: 2, end: 5)
            segment.subscription(session, "a/#", qos: 1)
            segment.inbound(session, 7)
        }
        for number in UInt64(1)...5 { segment.message(number, "t", "payload") }
        segment.queued(1, 1, message: 1)
        segment.queued(1, 2, message: 2)
        segment.queued(2, 1, message: 1)
        segment.retained("t", message: 4)
        segment.will(1, message: 5)
        try segment.apply(to: database)
    }

    @Test("a sound database has no findings")
    func sound() throws {
        #expect(try DatabaseCheck(directory: folder.path).run() == [])
    }

    @Test(
        "each broken rule is found and named",
        arguments: [
            (
                "DELETE FROM meta WHERE name = 'last_session'",
                "the table meta lacks 1 of its rows"
            ),
            (
                "UPDATE sessions SET client_identifier = CAST('client-1' AS BLOB)",
                "session 2 has the client identifier of an earlier one"
            ),
            (
                "UPDATE meta SET value = 1 WHERE name = 'last_session'",
                "session 2 has a number above the last one given, 1"
            ),
            (
                "UPDATE sessions SET horizon = 6 WHERE number = 1",
                "session 1 has its horizon behind the end of its queue, 5"
            ),
            (
                "UPDATE sessions SET waiting_messages = 4 WHERE number = 1",
                "session 1 counts 2 more waiting messages than its queue has"
            ),
            (
                "UPDATE sessions SET waiting_bytes = waiting_bytes - 1 WHERE number = 2",
                "session 2 counts -1 more waiting bytes than its queue has"
            ),
            (
                "UPDATE queue SET session = 9 WHERE session = 2",
                "1 messages wait for session 9, which does not exist"
            ),
            (
                "UPDATE queue SET position = 5 WHERE session = 2",
                "position 5 of session 2 is not below the end of its queue"
            ),
            (
                "UPDATE queue SET payload = NULL WHERE position = 2",
                "position 2 of session 1 counts other bytes than its content has"
            ),
            (
                "UPDATE messages SET reference_count = 3 WHERE number = 1",
                "message 1 has 1 more references than rows that refer to it"
            ),
            (
                "INSERT INTO messages VALUES (9, 0, 0, 0, 0, 'a', 'b', NULL)",
                "message 9 is kept and has no references"
            ),
            (
                "UPDATE queue SET message_id = 'a' WHERE session = 2",
                "position 1 of session 2 has an identifier without a message, or a wrong one"
            ),
            (
                "UPDATE messages SET message_id = zeroblob(256) WHERE number = 4",
                "message 4 has an identifier of 256 bytes"
            ),
            (
                "DELETE FROM messages WHERE number = 1",
                "message 1, which session 1 waits for, is missing"
            ),
            (
                "UPDATE retained SET topic = 'u'",
                "message 4, the retained one of a topic, is missing or has another topic"
            ),
            (
                "DELETE FROM messages WHERE number = 5",
                "message 5, the will of session 1, is missing"
            ),
            (
                "UPDATE subscriptions SET session = 8 WHERE session = 1",
                "1 subscriptions belong to session 8, which does not exist"
            ),
            (
                "UPDATE inbound SET session = 8 WHERE session = 1",
                "1 packet identifiers belong to session 8, which does not exist"
            ),
            (
                "UPDATE wills SET session = 8", "a will belongs to session 8, which does not exist"
            ),
        ])
    func broken(sql: String, finding: String) throws {
        try database.connection.execute(sql, "test")
        #expect(try DatabaseCheck(directory: folder.path).run().contains(finding))
    }

    @Test("many findings of one kind are counted, not listed")
    func many() throws {
        try database.connection.execute(
            """
            WITH RECURSIVE numbers(n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM numbers LIMIT 25)
            INSERT INTO subscriptions SELECT n, 'a', 1 FROM numbers
            """, "test")
        let findings = try DatabaseCheck(directory: folder.path).run()
        #expect(findings.count == 11)
        #expect(findings.last == "and 15 more of the same kind")
    }
}
