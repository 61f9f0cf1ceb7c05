/// The prepared statements that write queue positions that may be replaced.
struct CollapseWriter: ~Copyable {
    let insert: SQLiteStatement
    let delete: SQLiteStatement
    let deleteSession: SQLiteStatement

    static func prepare(
        on connection: borrowing SQLiteConnection
    ) throws(StoreFailure) -> CollapseWriter {
        CollapseWriter(
            insert: try connection.prepare(
                "INSERT OR REPLACE INTO collapsible VALUES (?1, ?2, ?3, ?4)", "write"),
            delete: try connection.prepare(
                "DELETE FROM collapsible WHERE session = ?1 AND position = ?2", "write"),
            deleteSession: try connection.prepare(
                "DELETE FROM collapsible WHERE session = ?1", "write"))
    }

    /// `removed` are sessions without a queue from now on.
    func write(
        _ changes: CollapseChanges, removedSessions removed: [UInt64]
    ) throws(StoreFailure) {
        for session in removed { try deleteSession.run(session) }
        for (place, stored) in changes.positions {
            if let stored {
                try insert.run(
                    stored.session, stored.position, stored.key,
                    stored.sequences.withUnsafeBytes { [UInt8]($0) })
            } else {
                try delete.run(place.session, place.position)
            }
        }
    }
}

extension Database {
    /// Calls `body` for each queue position that may be replaced.
    public func forEachCollapsible(
        _ body: (StoredCollapsible) -> Void
    ) throws(StoreFailure) {
        let row = try connection.prepare(
            "SELECT session, position, key, sequences FROM collapsible", "read")
        while try row.next() {
            let sequences = row.bytes(3)
            body(
                StoredCollapsible(
                    session: row.number(0), position: row.number(1), key: row.wideNumber(2),
                    sequences: stride(from: 0, to: sequences.count - 7, by: 8).map {
                        sequences.loadUnaligned(fromByteOffset: $0, as: UInt64.self)
                    }))
        }
    }
}
