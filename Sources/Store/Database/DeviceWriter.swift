/// The prepared statements that write devices.
struct DeviceWriter: ~Copyable {
    let insert: SQLiteStatement
    let wake: SQLiteStatement
    let delete: SQLiteStatement

    static func prepare(
        on connection: borrowing SQLiteConnection
    ) throws(StoreFailure) -> DeviceWriter {
        DeviceWriter(
            insert: try connection.prepare(
                """
                INSERT OR REPLACE INTO devices VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
                """, "write"),
            wake: try connection.prepare(
                """
                UPDATE devices SET woken_session = ?2, woken_position = ?3
                WHERE client_identifier = ?1
                """, "write"),
            delete: try connection.prepare(
                "DELETE FROM devices WHERE client_identifier = ?1", "write"))
    }

    func write(_ changes: DeviceChanges) throws(StoreFailure) {
        for (identifier, device) in changes.devices {
            guard let device else {
                try delete.run(identifier)
                continue
            }
            try insert.run(
                identifier, device.userName, device.token, device.bundle, device.kind,
                device.environment, device.registeredMs, device.isSetAside, device.woken.session,
                device.woken.position)
        }
        for (identifier, woken) in changes.woken {
            try wake.run(identifier, woken.session, woken.position)
        }
    }
}

extension Database {
    /// Calls `body` for each device.
    public func forEachDevice(_ body: (StoredDevice) -> Void) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT client_identifier, user_name, token, bundle, kind, environment, registered_ms,
            set_aside, woken_session, woken_position FROM devices
            """, "read")
        while try row.next() {
            body(
                StoredDevice(
                    clientIdentifier: [UInt8](row.bytes(0)),
                    userName: row.isNull(1) ? nil : [UInt8](row.bytes(1)),
                    token: [UInt8](row.bytes(2)), bundle: [UInt8](row.bytes(3)),
                    kind: row.byte(4), environment: row.byte(5), registeredMs: row.integer(6),
                    isSetAside: row.flag(7),
                    woken: StoredDevice.Woken(session: row.number(8), position: row.number(9))))
        }
    }
}
