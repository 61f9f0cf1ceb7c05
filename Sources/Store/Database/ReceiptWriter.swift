/// The prepared statements that write receipts.
struct ReceiptWriter: ~Copyable {
    let insertReceipt: SQLiteStatement
    let insertReceiver: SQLiteStatement
    let endReceiver: SQLiteStatement
    let deleteReceivers: SQLiteStatement
    let deleteReceipts: SQLiteStatement
    let updateProgress: SQLiteStatement

    static func prepare(
        on connection: borrowing SQLiteConnection
    ) throws(StoreFailure) -> ReceiptWriter {
        ReceiptWriter(
            insertReceipt: try connection.prepare(
                "INSERT OR REPLACE INTO receipts VALUES (?1, ?2, ?3, ?4)", "write"),
            insertReceiver: try connection.prepare(
                """
                INSERT OR REPLACE INTO receipt_receivers
                    (receipt, place, session, position, client_identifier)
                VALUES (?1, ?2, ?3, ?4, ?5)
                """, "write"),
            endReceiver: try connection.prepare(
                """
                UPDATE receipt_receivers SET outcome = ?3, reason = ?4, at_ms = ?5, event = ?6
                WHERE receipt = ?1 AND place = ?2
                """, "write"),
            deleteReceivers: try connection.prepare(
                "DELETE FROM receipt_receivers WHERE receipt < ?1", "write"),
            deleteReceipts: try connection.prepare(
                "DELETE FROM receipts WHERE number < ?1", "write"),
            updateProgress: try connection.prepare(
                """
                UPDATE receipt_progress SET first = max(first, ?1),
                    last_event = max(last_event, ?2), taken = max(taken, ?3)
                """, "write"))
    }

    func write(_ changes: ReceiptChanges) throws(StoreFailure) {
        for receipt in changes.receipts {
            try insertReceipt.run(receipt.number, receipt.atMs, receipt.messageID, receipt.topic)
        }
        for receiver in changes.receivers {
            try insertReceiver.run(
                receiver.receipt, receiver.place, receiver.session, receiver.position,
                receiver.clientIdentifier)
        }
        for end in changes.ends {
            try endReceiver.run(
                end.receipt, end.place, end.outcome, end.reason, end.atMs, end.event)
        }
        guard changes.progress != ReceiptProgress() else { return }
        try deleteReceivers.run(changes.progress.begin)
        try deleteReceipts.run(changes.progress.begin)
        try updateProgress.run(
            changes.progress.begin, changes.progress.lastEvent, changes.progress.taken)
    }
}

extension Database {
    /// Bounds of the receipts and of their events.
    public func receiptProgress() throws(StoreFailure) -> ReceiptProgress {
        let row = try connection.prepare(
            "SELECT first, last_event, taken FROM receipt_progress", "read")
        guard try row.next() else { return ReceiptProgress() }
        return ReceiptProgress(begin: row.number(0), lastEvent: row.number(1), taken: row.number(2))
    }

    /// Calls `body` for each receipt from this number on, in their order.
    public func forEachReceipt(
        from begin: UInt64, _ body: (StoredReceipt) -> Void
    ) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT number, at_ms, message_id, topic FROM receipts WHERE number >= ?1 ORDER BY number
            """, "read")
        row.bind(begin)
        while try row.next() {
            body(
                StoredReceipt(
                    number: row.number(0), atMs: Int64(bitPattern: row.number(1)),
                    messageID: [UInt8](row.bytes(2)), topic: [UInt8](row.bytes(3))))
        }
    }

    /// Calls `body` for each receiver of the receipts from this number on, in their order.
    public func forEachReceiver(
        from begin: UInt64, _ body: (StoredReceiver, ReceiverEnd) -> Void
    ) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT receipt, place, session, position, client_identifier, outcome, reason, at_ms, event
            FROM receipt_receivers WHERE receipt >= ?1 ORDER BY receipt, place
            """, "read")
        row.bind(begin)
        while try row.next() {
            let receiver = StoredReceiver(
                receipt: row.number(0), place: row.count(1), session: row.number(2),
                position: row.number(3), clientIdentifier: [UInt8](row.bytes(4)))
            body(
                receiver,
                ReceiverEnd(
                    receipt: receiver.receipt, place: receiver.place, outcome: row.byte(5),
                    reason: row.byte(6), atMs: Int64(bitPattern: row.number(7)),
                    event: row.number(8)))
        }
    }
}
