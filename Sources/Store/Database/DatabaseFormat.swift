import CCheckedPages

/// The tables of the database, their version, and the upgrades from older versions.
///
/// SQLite keeps the version as `user_version` and the program that made the file as
/// `application_id`.
struct DatabaseFormat: Sendable {
    /// "HRMS" in ASCII; marks a file as made by Hermes.
    static let applicationIdentifier: Int64 = 0x4852_4D53

    /// Size of a page in bytes (docs/decisions/0009).
    static let pageBytes = 16_384

    /// Counts from 1; raised by every change that an older program would misread.
    var version: Int64
    /// SQL that creates all tables of `version` in an empty file.
    var schema: String
    /// SQL that upgrades version N to N + 1, by N; one entry for each version below `version`.
    var upgrades: [Int64: String]

    /// What SQL cannot do of the upgrade from version N, done after it, by N.
    var conversions: [Int64: @Sendable (borrowing SQLiteConnection) throws(StoreFailure) -> Void] =
        [:]

    static let current = DatabaseFormat(
        version: 6,
        schema: schemaVersion1 + upgradeToVersion2 + version3 + upgradeToVersion4 + factTables
            + dropFormerTables + upgradeToVersion6,
        upgrades: [
            1: upgradeToVersion2, 2: version3, 3: upgradeToVersion4, 4: factTables,
            5: upgradeToVersion6,
        ],
        conversions: [
            4: { connection throws(StoreFailure) in
                try FormerTables.convert(connection)
                try connection.execute(dropFormerTables, "upgrade")
            }
        ])

    static let version3 =
        upgradeToVersion3 + messageIDColumns + receiptTables + scheduledTables + pushTables
        + collapseTable

    /// Creates the tables in an empty file, or upgrades an older file, in one transaction.
    func install(in connection: borrowing SQLiteConnection) throws(StoreFailure) {
        let identifier = try connection.number("PRAGMA application_id", "open")
        let found = try connection.number("PRAGMA user_version", "open")
        let objects = try connection.number("SELECT count(*) FROM sqlite_schema", "open")
        if identifier == 0, found == 0, objects == 0 {
            try create(in: connection)
            return
        }
        guard identifier == Self.applicationIdentifier else {
            throw StoreFailure(
                operation: "open", path: connection.path,
                reason: "it is the SQLite file of another program", kind: .other,
                cure: "Move it away, or use another data directory.")
        }
        guard found <= version else {
            throw StoreFailure(
                operation: "open", path: connection.path,
                reason: "its format is version \(found), and this program knows versions up to "
                    + "\(version)",
                kind: .newerFormat,
                cure: "Start the newer version of Hermes that wrote it, or start on a backup.")
        }
        // Before anything else is written: a file has checksums in all of its pages or in none.
        if !connection.isSealed { try seal(connection) }
        guard found < version else { return }
        try upgrade(connection, from: found)
    }

    /// Rewrites a file whose pages have no checksums, because a program without them made it: a
    /// former version, or an operator's copy by `VACUUM INTO`. Needs twice as much room as the file has,
    /// all of it in the data directory.
    private func seal(_ connection: borrowing SQLiteConnection) throws(StoreFailure) {
        // SQLite changes the size of pages only in a mode that a crash could leave half done.
        let pageBytes = try connection.number("PRAGMA page_size", "open")
        guard pageBytes == Self.pageBytes else {
            throw StoreFailure(
                operation: "open", path: connection.path,
                reason: "its pages have \(pageBytes) bytes, and those of Hermes \(Self.pageBytes)",
                kind: .other,
                cure: "Another program has made this file. Give it the pages of Hermes, and start "
                    + "again: sqlite3 FILE 'PRAGMA journal_mode = DELETE; PRAGMA page_size = "
                    + "\(Self.pageBytes); PRAGMA auto_vacuum = INCREMENTAL; VACUUM'")
        }
        do throws(StoreFailure) {
            try rewrite(connection)
        } catch {
            // As in an upgrade, one bad page does not make the rest worthless.
            guard error.kind == .damaged else { throw error }
            throw StoreFailure(
                operation: error.operation, path: error.path, reason: error.reason,
                code: error.code, kind: .other,
                cure: "Start on a backup, or on what the command .recover of sqlite3 saves of it.")
        }
        guard connection.isSealed else {
            throw StoreFailure(
                operation: "rewrite", path: connection.path,
                reason: "its pages have got no checksums, because another program reads it",
                kind: .other, cure: "End that program, and start again.")
        }
    }

    private func rewrite(_ connection: borrowing SQLiteConnection) throws(StoreFailure) {
        // Only with a write-ahead log are the pages of the file written together, the first one first.
        let mode = try connection.prepare("PRAGMA journal_mode = WAL", "open")
        guard try mode.next(), mode.bytes(0).elementsEqual("wal".utf8) else {
            throw StoreFailure(
                operation: "rewrite", path: connection.path,
                reason: "it cannot get a write-ahead log, because another program uses it",
                kind: .locked, cure: "End that program, and start again.")
        }
        mode.reset()
        connection.reserveChecksums()
        // The folders where SQLite writes temporary files otherwise may be small or read-only.
        if let slash = connection.path.utf8.lastIndex(of: UInt8(ascii: "/")) {
            String(connection.path[..<slash]).withCString { hermes_pages_use_temporary_folder($0) }
        }
        try connection.execute("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)", "rewrite")
    }

    private func create(in connection: borrowing SQLiteConnection) throws(StoreFailure) {
        // These settings are fixed once the file has its first page, the room for checksums by the
        // next pragma.
        connection.reserveChecksums()
        try connection.execute(
            "PRAGMA page_size = \(Self.pageBytes); PRAGMA auto_vacuum = INCREMENTAL", "create")
        try connection.execute("PRAGMA journal_mode = WAL", "create")
        let sql =
            schema + "PRAGMA application_id = \(Self.applicationIdentifier);"
            + "PRAGMA user_version = \(version);"
        try connection.transaction { () throws(StoreFailure) in
            try connection.execute(sql, "create the tables of")
        }
    }

    private func upgrade(
        _ connection: borrowing SQLiteConnection, from found: Int64
    ) throws(StoreFailure) {
        try connection.transaction { () throws(StoreFailure) in
            for step in found..<version { try upgrade(connection, by: step) }
        }
    }

    private func upgrade(
        _ connection: borrowing SQLiteConnection, by step: Int64
    ) throws(StoreFailure) {
        guard let upgrade = upgrades[step] else {
            throw StoreFailure(
                operation: "upgrade", path: connection.path,
                reason: "its format is version \(step), which this program no longer knows",
                kind: .other, cure: "Start the next newer version of Hermes on it first.")
        }
        try connection.execute(upgrade, "upgrade")
        do throws(StoreFailure) {
            try conversions[step]?(connection)
        } catch {
            // One bad page of a table that is converted does not make the rest of the database
            // worthless, so the start is refused and the files are left as they are.
            guard error.kind == .damaged else { throw error }
            throw StoreFailure(
                operation: error.operation, path: error.path, reason: error.reason,
                code: error.code, kind: .other,
                cure: "Start on a backup, or repair the file with the version that wrote it.")
        }
        try connection.execute("PRAGMA user_version = \(step + 1)", "upgrade")
    }
}
