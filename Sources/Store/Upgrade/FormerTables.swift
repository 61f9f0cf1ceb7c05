/// Turns the tables of version 4 into facts, within the transaction of the upgrade.
struct FormerTables: ~Copyable {
    private let facts: FactStatements

    static func convert(_ connection: borrowing SQLiteConnection) throws(StoreFailure) {
        let tables = FormerTables(facts: try FactStatements.prepare(on: connection))
        try tables.sequences(connection)
        try tables.publishKeys(connection)
        try tables.receipts(connection)
        try tables.scheduled(connection)
        try tables.collapsible(connection)
        try tables.tags(connection)
        try tables.pushes(connection)
        try tables.devices(connection)
    }

    private init(facts: consuming FactStatements) { self.facts = facts }

    private func store(_ fact: FormerFact) throws(StoreFailure) {
        switch fact {
        case .store(let table, let owner, let key, let value):
            try facts.store.run(table, key, owner.partition, value)
        case .remove(let table, _, let key): try facts.remove.run(table, key)
        case .removeRange(let table, let from, let below):
            try facts.removeRange.run(table, from, below)
        }
    }

    private func sequences(_ connection: borrowing SQLiteConnection) throws(StoreFailure) {
        let row = try connection.prepare("SELECT channel, number FROM sequences", "upgrade")
        while try row.next() { try store(.sequence(row.array(0), row.number(1))) }
    }

    private func publishKeys(_ connection: borrowing SQLiteConnection) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT key, digest, message_id, bucket, matched, online, queued, dropped
            FROM publish_keys ORDER BY bucket, key
            """, "upgrade")
        while try row.next() {
            try store(
                .publishKey(
                    row.wideNumber(0), digest: row.wideNumber(1), messageID: row.wideNumber(2),
                    bucket: row.number(3), counts: (4...7).map { row.count($0) }))
        }
    }

    private func receipts(_ connection: borrowing SQLiteConnection) throws(StoreFailure) {
        let bounds = try connection.prepare(
            "SELECT first, last_event, taken FROM receipt_progress", "upgrade")
        while try bounds.next() {
            try store(
                .receiptBounds(
                    begin: bounds.number(0), lastEvent: bounds.number(1), taken: bounds.number(2)))
        }
        let row = try connection.prepare(
            "SELECT number, at_ms, message_id, topic FROM receipts ORDER BY number", "upgrade")
        while try row.next() {
            try store(
                .receipt(
                    row.number(0), atMs: row.integer(1), messageID: row.array(2),
                    topic: row.array(3)))
        }
        let receiver = try connection.prepare(
            """
            SELECT receipt, place, session, position, client_identifier, outcome, reason,
                receipt_receivers.at_ms, event, message_id
            FROM receipt_receivers JOIN receipts ON number = receipt ORDER BY receipt, place
            """, "upgrade")
        while try receiver.next() {
            let (receipt, place) = (receiver.number(0), receiver.count(1))
            let owner = FactOwner(receiver.bytes(9))
            if receiver.byte(5) != 0 {
                try store(
                    .receiverEnd(
                        receipt, owner, place: place, outcome: receiver.byte(5),
                        reason: receiver.byte(6), atMs: receiver.integer(7),
                        event: receiver.number(8)))
            }
            try store(
                .receiver(
                    receipt, owner, place: place, session: receiver.number(2),
                    position: receiver.number(3), client: receiver.array(4)))
        }
    }

    private func scheduled(_ connection: borrowing SQLiteConnection) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT number, due_ms, expires_in_ms, message_id, topic, payload, qos, retain, receipt
            FROM scheduled ORDER BY number
            """, "upgrade")
        while try row.next() {
            try store(
                .scheduled(
                    row.number(0), dueMs: row.integer(1), expiresInMs: row.integer(2),
                    qos: row.byte(6), retain: row.flag(7), isFollowed: row.flag(8),
                    messageID: row.array(3), topic: row.array(4), payload: row.array(5)))
        }
    }

    private func collapsible(_ connection: borrowing SQLiteConnection) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT session, position, key, sequences, client_identifier
            FROM collapsible JOIN sessions ON number = session ORDER BY session, position
            """, "upgrade")
        while try row.next() {
            let sequences = row.bytes(3)
            try store(
                .collapsible(
                    row.number(0), FactOwner(row.bytes(4)), position: row.number(1),
                    key: row.wideNumber(2),
                    sequences: stride(from: 0, to: sequences.count - 7, by: 8).map {
                        UInt64(
                            littleEndian: sequences.loadUnaligned(
                                fromByteOffset: $0, as: UInt64.self))
                    }))
        }
    }

    private func tags(_ connection: borrowing SQLiteConnection) throws(StoreFailure) {
        let row = try connection.prepare("SELECT client_identifier, tag FROM tags", "upgrade")
        while try row.next() {
            try store(.tag(row.array(1), of: row.array(0), isSet: true))
        }
    }

    private func pushes(_ connection: borrowing SQLiteConnection) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT number, created_ms, due_ms, expires_in_ms, spread_ms, push_id, topic, payload,
                qos, receipt, target, seed, state, cursor, matched, reached, online, queued,
                dropped, without_session, denied, began_ms, ended_ms
            FROM pushes ORDER BY number
            """, "upgrade")
        while try row.next() {
            let push = FormerFact.push(
                row.number(0), times: (1...4).map { row.integer($0) }, seed: row.number(11),
                qos: row.byte(8), isFollowed: row.flag(9), pushID: row.array(5),
                topic: row.array(6), payload: row.array(7), target: row.array(10))
            let progress = FormerFact.pushProgress(
                row.number(0), FactOwner(row.bytes(5)), state: row.byte(12),
                cursor: row.number(13), counts: (14...20).map { row.count($0) },
                beganMs: row.integer(21), endedMs: row.integer(22))
            for fact in push + progress { try store(fact) }
        }
    }

    private func devices(_ connection: borrowing SQLiteConnection) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT client_identifier, user_name, token, bundle, kind, environment, registered_ms,
                set_aside, woken_session, woken_position
            FROM devices
            """, "upgrade")
        while try row.next() {
            let client = row.array(0)
            try store(
                .device(
                    client, userName: row.isNull(1) ? nil : row.array(1), token: row.array(2),
                    bundle: row.array(3), kind: row.byte(4), environment: row.byte(5),
                    registeredMs: row.integer(6), isSetAside: row.flag(7)))
            if row.number(8) != 0 {
                try store(.woken(client, session: row.number(8), position: row.number(9)))
            }
        }
    }
}

extension SQLiteStatement {
    fileprivate func array(_ column: Int32) -> [UInt8] { [UInt8](bytes(column)) }
}
