/// The prepared statements that write facts.
struct FactStatements: ~Copyable {
    let store: SQLiteStatement
    let remove: SQLiteStatement
    let removeRange: SQLiteStatement

    static func prepare(
        on connection: borrowing SQLiteConnection
    ) throws(StoreFailure) -> FactStatements {
        FactStatements(
            store: try connection.prepare(
                "INSERT OR REPLACE INTO facts VALUES (?1, ?2, ?3, ?4)", "write"),
            remove: try connection.prepare(
                "DELETE FROM facts WHERE fact_table = ?1 AND key = ?2", "write"),
            removeRange: try connection.prepare(
                "DELETE FROM facts WHERE fact_table = ?1 AND key >= ?2 AND key < ?3", "write"))
    }

    /// Writes sorted changes, so that neighbours in the table follow each other.
    func write(_ changes: FactChanges) throws(StoreFailure) {
        for removal in changes.removals {
            try removeRange.run(removal.table, removal.from, removal.below)
        }
        try changes.bytes.withUnsafeBufferPointer { (bytes) throws(StoreFailure) in
            let bytes = UnsafeRawBufferPointer(bytes)
            for entry in changes.entries {
                let key = BorrowedBlob(entry.key(in: bytes).bytes)
                switch entry.state {
                case .stored:
                    try store.run(
                        entry.table, key, entry.owner.partition,
                        BorrowedBlob(entry.value(in: bytes)))
                case .removed: try remove.run(entry.table, key)
                case .forgotten: continue
                }
            }
        }
    }
}

extension Database {
    /// Calls `body` for each fact, by table and key. Its bytes are valid only during the call.
    public func forEachFact(_ body: (StoredFact) -> Void) throws(StoreFailure) {
        let row = try connection.prepare(
            "SELECT fact_table, owner, key, value FROM facts ORDER BY fact_table, key", "read")
        while try row.next() {
            body(
                StoredFact(
                    table: row.byte(0), owner: FactOwner(partition: row.byte(1)),
                    key: row.bytes(2), value: row.bytes(3)))
        }
    }

    /// Notes the names of tables, which a view shows to people.
    public func name(_ tables: [FactTable]) throws(StoreFailure) {
        guard !tables.isEmpty else { return }
        let known = try connection.prepare("SELECT number, name FROM fact_tables", "read")
        var names: [UInt8: String] = [:]
        while try known.next() { names[known.byte(0)] = known.text(1) }
        let changed = tables.filter { names[$0.number] != $0.name }
        guard !changed.isEmpty else { return }
        let store = try connection.prepare(
            "INSERT OR REPLACE INTO fact_tables VALUES (?1, CAST(?2 AS TEXT))", "write")
        try connection.transaction { () throws(StoreFailure) in
            for table in changed { try store.run(table.number, [UInt8](table.name.utf8)) }
        }
    }
}
