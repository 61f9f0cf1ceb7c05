import CCheckedPages
import CSQLite
import Glibc
import SystemFiles

extension StoreFailure {
    /// Classifies SQLite's extended result code (sqlite.org/rescode.html).
    ///
    /// `reason` is SQLite's text. `systemError` is the `errno` of the system call that failed; 0 if
    /// there was none.
    init(
        operation: String, path: String, sqliteCode code: Int32, reason: String,
        systemError: Int32 = 0
    ) {
        let kind = Self.kind(ofSQLite: code, systemError: systemError)
        let words =
            systemError == 0
            ? reason : "\(reason) (\(SystemError.words(for: systemError)))"
        self.init(
            operation: operation, path: path, reason: words, code: code, kind: kind,
            cure: Self.cure(ofSQLite: kind))
    }

    /// The failure of the call that the connection has just made.
    init(operation: String, path: String, connection: OpaquePointer) {
        let code = sqlite3_extended_errcode(connection)
        let reason =
            code == Self.wrongChecksum
            ? "its page \(Self.page(hermes_control_last_damaged, of: connection)) does not fit "
                + "its checksum"
            : sqlite3_errmsg(connection).map { String(cString: $0) } ?? "error \(code)"
        // SQLite keeps the system error from call to call. Only these codes are caused by one.
        let systemError: Int32 =
            switch code & 0xFF {
            case _ where code == Self.wrongChecksum: 0
            case SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_FULL: sqlite3_system_errno(connection)
            default: 0
            }
        self.init(
            operation: operation, path: path, sqliteCode: code, reason: reason,
            systemError: systemError)
    }

    /// The number of a page that the access layer of a connection's file has noted; 0 without one.
    static func page(_ operation: Int, of connection: OpaquePointer) -> UInt64 {
        var number: UInt64 = 0
        sqlite3_file_control(connection, "main", Int32(operation), &number)
        return number
    }

    /// SQLite's code for a page whose content does not fit its checksums; a macro that Swift does not
    /// import.
    static let wrongChecksum: Int32 = SQLITE_IOERR | (32 << 8)

    private static func kind(ofSQLite code: Int32, systemError: Int32) -> Kind {
        if code == Self.wrongChecksum { return .damaged }
        return switch code & 0xFF {
        case SQLITE_FULL: .outOfSpace
        // SQLite reports "full" for ENOSPC only; an exceeded quota arrives as a failed write.
        case SQLITE_IOERR:
            systemError == EDQUOT || systemError == ENOSPC ? .outOfSpace : .inputOutput
        // A constraint fails when the database's content does not fit what the journal says about
        // it.
        case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT, SQLITE_CONSTRAINT, SQLITE_MISMATCH:
            .damaged
        case SQLITE_CANTOPEN: systemError == EMFILE || systemError == ENFILE ? .other : .permissions
        case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH: .permissions
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: .locked
        default: .other
        }
    }

    private static func cure(ofSQLite kind: Kind) -> String? {
        switch kind {
        case .outOfSpace: "Free space on this file system."
        case .inputOutput: "Check the disk and the kernel's log."
        case .damaged:
            "Run `hermesctl store check`, and `hermesctl store repair` while the broker is stopped, or "
                + "start on a backup."
        case .permissions:
            "Let the user of the broker read and write this file and its folder (modes 0600 and 0700)."
        case .locked: "End the other program that has this file open."
        case .newerFormat, .other: nil
        }
    }
}
