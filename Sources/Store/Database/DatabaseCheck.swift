import CCheckedPages

/// Checks the database for damage: checksums and SQLite's own check of the pages, then rules that
/// must hold between rows.
///
/// It reads the whole file over a read-only connection of its own, so a running broker is not
/// disturbed.
public struct DatabaseCheck: ~Copyable {
    private let connection: SQLiteConnection

    /// The most findings of one kind that are listed one by one.
    private static let mostTold = 10

    /// Opens the database of a data directory.
    public init(directory: String) throws(StoreFailure) {
        connection = try SQLiteConnection.open(
            DatabaseFile.path(in: directory), .readOnly, cacheBytes: 16 * 1_024 * 1_024)
    }

    /// Returns the findings, one line each; empty when the database is sound.
    ///
    /// - Throws: ``StoreFailure`` if the file cannot be read, or is too damaged to continue.
    public func run() throws(StoreFailure) -> [String] {
        var findings = try quickCheck()
        // With broken pages, the findings about rows would only repeat the damage.
        guard findings.isEmpty else { return findings }
        try requireFormat()
        for rule in Self.rules { findings += try check(rule) }
        return findings
    }

    /// The rules apply to the tables of the current version only.
    private func requireFormat() throws(StoreFailure) {
        let version = try connection.number("PRAGMA user_version", "check")
        guard version != DatabaseFormat.current.version else { return }
        throw StoreFailure(
            operation: "check", path: connection.path,
            reason: "its format is version \(version), and this program checks version "
                + "\(DatabaseFormat.current.version)", kind: .other,
            cure: version < DatabaseFormat.current.version
                ? "Start hermesd on it once, which upgrades it."
                : "Use the hermesctl of the version that wrote it.")
    }

    private func quickCheck() throws(StoreFailure) -> [String] {
        let before = hermes_page_findings().corrected
        let row = try connection.prepare("PRAGMA quick_check(\(Self.mostTold))", "check")
        var findings: [String] = []
        while try row.next() {
            // A row may have several lines, below one that names the database.
            for line in row.text(0).split(separator: "\n")
            where line != "ok" && !line.hasPrefix("***") {
                findings.append(Self.told(String(line)))
            }
        }
        let after = hermes_page_findings()
        if after.corrected > before {
            let last = StoreFailure.page(hermes_control_last_corrected, of: connection.handle)
            findings.append(
                "\(after.corrected - before) reads of pages found one or two flipped bits, the last "
                    + "one in page \(last); their checksums correct them, and "
                    + "nothing is lost. Check the disk and the memory of this machine")
        }
        return findings
    }

    /// SQLite's words for a finding, in which a wrong checksum is a number behind that of the page.
    private static func told(_ text: String) -> String {
        guard text.hasSuffix("error code=\(StoreFailure.wrongChecksum)"),
            let colon = text.firstIndex(of: ":")
        else { return text }
        let page = text[..<colon]
        return (page.hasPrefix("Page") ? "p" + page.dropFirst() : page)
            + " does not fit its checksum"
    }

    private struct Rule {
        /// The finding about a row of `query`'s result; `#` stands for its first column and `@` for
        /// its second.
        let finding: String
        let query: String
    }

    private func check(_ rule: Rule) throws(StoreFailure) -> [String] {
        let row = try connection.prepare(rule.query, "check")
        var findings: [String] = []
        var count = 0
        while try row.next() {
            count += 1
            guard count <= Self.mostTold else { continue }
            let second = row.columns > 1 ? row.integer(1) : 0
            findings.append(
                rule.finding.split(separator: "#", omittingEmptySubsequences: false)
                    .joined(separator: "\(row.integer(0))")
                    .split(separator: "@", omittingEmptySubsequences: false)
                    .joined(separator: "\(second)"))
        }
        if count > Self.mostTold {
            findings.append("and \(count - Self.mostTold) more of the same kind")
        }
        return findings
    }

    private static let rules = [
        Rule(
            finding: "the table meta lacks # of its rows",
            query: """
                SELECT 3 - count(*) FROM meta
                WHERE name IN ('applied_segment', 'last_session', 'last_message')
                HAVING count(*) <> 3
                """),
        Rule(
            finding: "session # has the client identifier of an earlier one",
            query: """
                SELECT max(number) FROM sessions WHERE NOT ended
                GROUP BY client_identifier HAVING count(*) > 1
                """),
        Rule(
            finding: "session # has a number above the last one given, @",
            query: """
                SELECT number, value FROM sessions JOIN meta ON name = 'last_session'
                WHERE number > value
                """),
        Rule(
            finding: "session # has a client identifier or user name of @ bytes",
            query: """
                SELECT number, max(length(client_identifier), coalesce(length(user_name), 0))
                FROM sessions WHERE length(client_identifier) > 65535
                    OR length(user_name) > 65535
                """),
        Rule(
            finding: "session # has numbers that are never reached",
            query: """
                SELECT number FROM sessions
                WHERE max(number, horizon, end, waiting_messages, waiting_bytes) >= 1 << 62
                    OR min(number - 1, horizon, end, waiting_messages, waiting_bytes) < 0
                """),
        Rule(
            finding: "session # has a subscription whose filter has @ bytes",
            query: """
                SELECT session, length(filter) AS bytes FROM subscriptions WHERE bytes > 65535
                """),
        Rule(
            finding: "message # has a topic of @ bytes",
            query: """
                SELECT number, length(topic) AS bytes FROM messages WHERE bytes > 65535
                """),
        Rule(
            finding: "position @ of session # has a topic or a filter that is too long",
            query: """
                SELECT session, position FROM queue
                WHERE length(topic) > 65535 OR length(shared_filter) > 65535
                """),
        Rule(
            finding: "session # has the packet identifier @",
            query: """
                SELECT session, packet_identifier FROM inbound
                WHERE packet_identifier NOT BETWEEN 1 AND 65535
                """),
        Rule(
            finding: "session # has its horizon behind the end of its queue, @",
            query: "SELECT number, end FROM sessions WHERE horizon > end"),
        Rule(
            finding: "session # counts @ more waiting messages than its queue has",
            query: """
                SELECT number, waiting_messages - coalesce(rows, 0) AS difference
                FROM sessions LEFT JOIN
                    (SELECT session, count(*) AS rows FROM queue GROUP BY session)
                    ON session = number
                WHERE difference <> 0
                """),
        Rule(
            finding: "session # counts @ more waiting bytes than its queue has",
            query: """
                SELECT number, waiting_bytes - coalesce(total, 0) AS difference
                FROM sessions LEFT JOIN
                    (SELECT session, sum(bytes) AS total FROM queue GROUP BY session)
                    ON session = number
                WHERE difference <> 0
                """),
        Rule(
            finding: "@ messages wait for session #, which does not exist",
            query: """
                SELECT session, count(*) FROM queue
                WHERE session NOT IN (SELECT number FROM sessions) GROUP BY session
                """),
        Rule(
            finding: "position @ of session # is not below the end of its queue",
            query: """
                SELECT session, max(position) FROM queue JOIN sessions ON number = session
                WHERE position >= end GROUP BY session
                """),
        Rule(
            finding: "position @ of session # counts other bytes than its content has",
            query: """
                SELECT session, position FROM queue
                WHERE NOT shared AND NOT released AND
                    (topic IS NULL OR payload IS NULL OR length(topic) + length(payload) <> bytes)
                """),
        Rule(
            finding: "position @ of session # has an identifier without a message, or a wrong one",
            query: """
                SELECT session, position FROM queue
                WHERE message_id IS NOT NULL AND
                    (shared OR released OR length(message_id) NOT BETWEEN 1 AND 255)
                """),
        Rule(
            finding: "message # has an identifier of @ bytes",
            query: """
                SELECT number, length(message_id) AS bytes FROM messages
                WHERE bytes NOT BETWEEN 1 AND 255
                """),
        Rule(
            finding: "message # has @ more references than rows that refer to it",
            query: """
                SELECT number, reference_count - coalesce(rows, 0) AS difference
                FROM messages LEFT JOIN (
                    SELECT message, count(*) AS rows FROM (
                        SELECT message FROM queue WHERE shared
                        UNION ALL SELECT message FROM retained
                        UNION ALL SELECT message FROM wills
                    ) GROUP BY message
                ) ON message = number
                WHERE difference <> 0
                """),
        Rule(
            finding: "message # is kept and has no references",
            query: "SELECT number FROM messages WHERE reference_count < 1"),
        Rule(
            finding: "message #, which session @ waits for, is missing",
            query: """
                SELECT message, min(session) FROM queue
                WHERE shared AND message NOT IN (SELECT number FROM messages) GROUP BY message
                """),
        Rule(
            finding: "message #, the retained one of a topic, is missing or has another topic",
            query: """
                SELECT message FROM retained LEFT JOIN messages ON number = message
                WHERE messages.topic IS NOT retained.topic
                """),
        Rule(
            finding: "message #, the will of session @, is missing",
            query: """
                SELECT message, session FROM wills
                WHERE message NOT IN (SELECT number FROM messages)
                """),
        Rule(
            finding: "@ subscriptions belong to session #, which does not exist",
            query: """
                SELECT session, count(*) FROM subscriptions
                WHERE session NOT IN (SELECT number FROM sessions) GROUP BY session
                """),
        Rule(
            finding: "@ packet identifiers belong to session #, which does not exist",
            query: """
                SELECT session, count(*) FROM inbound
                WHERE session NOT IN (SELECT number FROM sessions) GROUP BY session
                """),
        Rule(
            finding: "a will belongs to session #, which does not exist",
            query: """
                SELECT session FROM wills WHERE session NOT IN (SELECT number FROM sessions)
                """),
        Rule(
            finding: "@ facts of table # have an owner or a key that no fact can have",
            query: """
                SELECT fact_table, count(*) FROM facts
                WHERE fact_table NOT BETWEEN 0 AND 255 OR owner NOT BETWEEN 0 AND 255
                    OR typeof(key) <> 'blob' OR typeof(value) <> 'blob'
                GROUP BY fact_table
                """),
    ]
}
