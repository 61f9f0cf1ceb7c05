import CSQLite
import Glibc
import SystemFiles

/// The rows of a damaged database, on their way to a new one.
struct RepairedRows {
    /// A table of the current format.
    private struct Table {
        let name: String
        /// A column of text; the others hold numbers and blobs.
        var text: Int?
    }

    private static let tables = [
        Table(name: "meta", text: 0), Table(name: "sessions"), Table(name: "subscriptions"),
        Table(name: "messages"), Table(name: "queue"), Table(name: "inbound"),
        Table(name: "retained"), Table(name: "wills"), Table(name: "facts"),
        Table(name: "fact_tables", text: 1),
    ]

    private let path: String
    /// The name of each table, by the root of its tree.
    private var names: [UInt32: String] = [:]
    /// The root of the tree that each page belongs to.
    private var roots: [UInt32] = []

    init(path: String) { self.path = path }

    /// Reads all pages, and finds the table of each.
    mutating func find(in file: inout PageFile) throws(StoreFailure) {
        var owners = PageOwners(&file)
        // The table of tables has the first page as its root.
        owners.claim(root: 1, &file)
        for number in 1..<UInt32(owners.roots.count) where owners.roots[Int(number)] == 1 {
            guard let page = file.page(number) else {
                throw DatabaseRepair.unsaved(path, "its list of tables is damaged")
            }
            try TreePage(page, number: number).forEachRow(&file) { row in note(row) }
        }
        for root in names.keys.sorted() { owners.claim(root: root, &file) }
        owners.adopt()
        roots = owners.roots
        for number in 1..<UInt32(roots.count) { _ = file.page(number) }
    }

    /// Notes the root of a table, from its row in the table of tables.
    private mutating func note(_ row: StoredRow?) {
        guard let values = row?.values, values.count >= 4, case .bytes(let name) = values[1],
            case .bytes(let type) = values[0], type == Array("table".utf8),
            case .integer(let root) = values[3], let place = UInt32(exactly: root), place > 0
        else { return }
        let text = String(decoding: name, as: UTF8.self)
        if Self.tables.contains(where: { $0.name == text }) { names[place] = text }
    }

    /// Makes the new database. Returns what it has, and what is lost.
    func write(to new: String, _ file: inout PageFile) throws(StoreFailure) -> DatabaseRepair.Report
    {
        var losses: [String] = []
        try DatabaseFile.prepare(new)
        do throws(SystemError) {
            // Also when root repairs what belongs to the user of the broker.
            try OpenFile(new, flags: O_RDONLY | O_NOFOLLOW).adoptFolderOwner()
        } catch {
            throw StoreFailure(error)
        }
        do {
            let connection = try SQLiteConnection.open(
                new, .readWrite, cacheBytes: Database.cacheBytes)
            try DatabaseFormat.current.install(in: connection)
            // It counts only once it is complete, so that it needs no safety before.
            try connection.execute(
                "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY",
                "open")
            try connection.transaction { () throws(StoreFailure) in
                try connection.execute("DELETE FROM meta", "repair")
                var unread = 0
                for table in Self.tables { try copy(table, to: connection, &file, &unread) }
                let progress = try connection.number(
                    "SELECT count(*) FROM meta WHERE name = 'applied_segment'", "repair")
                guard progress == 1 else {
                    throw DatabaseRepair.unsaved(path, "its table meta is damaged")
                }
                losses = pages(file)
                if unread > 0 {
                    losses.append("\(unread) rows of undamaged pages have parts in damaged ones")
                }
                losses += try Self.mend(connection)
            }
        }
        do throws(SystemError) {
            try OpenFile(new, flags: O_RDONLY | O_NOFOLLOW).synchronize()
        } catch {
            throw StoreFailure(error)
        }
        var report = DatabaseRepair.Report(losses: losses)
        let connection = try SQLiteConnection.open(
            new, .readOnly, cacheBytes: Database.cacheBytes)
        for table in Self.tables {
            let rows = try connection.number("SELECT count(*) FROM \(table.name)", "read")
            report.kept.append(DatabaseRepair.Kept(table: table.name, rows: Int(rows)))
        }
        return report
    }

    private func copy(
        _ table: Table, to connection: borrowing SQLiteConnection, _ file: inout PageFile,
        _ unread: inout Int
    ) throws(StoreFailure) {
        guard let root = names.first(where: { $0.value == table.name })?.key else { return }
        let all = try connection.prepare("SELECT * FROM \(table.name) LIMIT 0", "repair")
        let columns = Int(all.columns)
        // The last columns may be missing in rows of former versions.
        var inserts = SQLiteInserts(table.name, text: table.text)
        for number in 1..<UInt32(roots.count) where roots[Int(number)] == root {
            guard let page = file.page(number) else { continue }
            try TreePage(page, number: number).forEachRow(&file) { row throws(StoreFailure) in
                guard let row, !row.values.isEmpty, row.values.count <= columns else {
                    unread += 1
                    return
                }
                if try !inserts.insert(row.values, in: connection) { unread += 1 }
            }
        }
    }

    /// Names the damaged pages, with their tables.
    private func pages(_ file: borrowing PageFile) -> [String] {
        var byTable: [String: [UInt32]] = [:]
        for page in file.damaged {
            byTable[names[roots[Int(page)]] ?? "", default: []].append(page)
        }
        return byTable.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map {
            let numbers = $1.sorted().prefix(10).map { "\($0)" }.joined(separator: ", ")
            let rest = $1.count > 10 ? " and \($1.count - 10) more" : ""
            let what = $1.count == 1 ? "page" : "pages"
            return $0.isEmpty
                ? "\(what) \(numbers)\(rest) of the database without rows of their own: large "
                    + "payloads, indexes or free space"
                : "\(what) \(numbers)\(rest) of the database, with rows of the table \($0)"
        }
    }

    // MARK: Rows that refer to others

    /// Removes what refers to lost rows, and makes sums anew; returns what that says of losses.
    private static func mend(
        _ connection: borrowing SQLiteConnection
    ) throws(StoreFailure) -> [String] {
        let counted = try connection.number("SELECT sum(waiting_messages) FROM sessions", "repair")
        var losses: [String] = []
        for (table, words) in [
            ("queue", "messages that waited"), ("subscriptions", "subscriptions"),
            ("wills", "wills"), ("inbound", "packet identifiers of QoS 2"),
        ] {
            let rows = try remove(
                "FROM \(table) WHERE session NOT IN (SELECT number FROM sessions)", connection)
            if rows > 0 { losses.append("\(rows) \(words) for sessions that are lost") }
        }
        try connection.execute(
            "DELETE FROM queue WHERE shared AND message NOT IN (SELECT number FROM messages)",
            "repair")
        for (table, words) in [("retained", "retained messages"), ("wills", "wills")] {
            let rows = try remove(
                "FROM \(table) WHERE message NOT IN (SELECT number FROM messages)", connection)
            if rows > 0 { losses.append("\(rows) \(words), whose content is lost") }
        }
        try connection.execute(Self.sums, "repair")
        let orphans = try remove("FROM messages WHERE reference_count < 1", connection)
        if orphans > 0 {
            losses.append("\(orphans) messages whose receivers or retained topics are lost")
        }
        let waiting = try connection.number("SELECT count(*) FROM queue", "repair")
        if counted > waiting {
            losses.append("\(counted - waiting) messages that waited for sessions that are left")
        }
        return losses
    }

    private static func remove(
        _ rows: String, _ connection: borrowing SQLiteConnection
    ) throws(StoreFailure) -> Int {
        let statement = try connection.prepare("DELETE \(rows)", "repair")
        try statement.run()
        return statement.changedRows
    }

    private static let sums = """
        CREATE TEMP TABLE counted (number INTEGER PRIMARY KEY, count INTEGER, bytes INTEGER);
        INSERT INTO counted SELECT session, count(*), sum(bytes) FROM queue GROUP BY session;
        UPDATE sessions SET
            waiting_messages =
                coalesce((SELECT count FROM counted WHERE counted.number = sessions.number), 0),
            waiting_bytes =
                coalesce((SELECT bytes FROM counted WHERE counted.number = sessions.number), 0);
        DELETE FROM counted;
        INSERT INTO counted SELECT message, count(*), 0 FROM (
            SELECT message FROM queue WHERE shared
            UNION ALL SELECT message FROM retained
            UNION ALL SELECT message FROM wills
        ) GROUP BY message;
        UPDATE messages SET reference_count =
            coalesce((SELECT count FROM counted WHERE counted.number = messages.number), 0);
        DROP TABLE counted;
        """
}

/// Statements that add rows to one table, one for each number of values.
private struct SQLiteInserts: ~Copyable {
    private let table: String
    private let text: Int?
    private var names: [String] = []

    init(_ table: String, text: Int?) {
        self.table = table
        self.text = text
    }

    /// Adds a row; false when the table does not take it.
    mutating func insert(
        _ values: [StoredRow.Value], in connection: borrowing SQLiteConnection
    ) throws(StoreFailure) -> Bool {
        if names.isEmpty {
            let row = try connection.prepare(
                "SELECT name FROM pragma_table_info('\(table)')", "repair")
            while try row.next() { names.append(row.text(0)) }
        }
        let columns = names.prefix(values.count).joined(separator: ", ")
        let places = values.indices.map { $0 == text ? "CAST(? AS TEXT)" : "?" }
        let insert = try connection.prepare(
            "INSERT OR IGNORE INTO \(table) (\(columns)) VALUES "
                + "(\(places.joined(separator: ", ")))", "repair")
        for (place, value) in values.enumerated() { insert.bind(value, at: Int32(place + 1)) }
        try insert.run()
        return insert.changedRows == 1
    }
}
