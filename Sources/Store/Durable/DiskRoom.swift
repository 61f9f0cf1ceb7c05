import Glibc

/// Checks once a second whether the file system has more free space than the reserve.
struct DiskRoom {
    private static let intervalMs: UInt64 = 1_000

    private let directory: String
    private let reserveBytes: UInt64
    private var dueMs: UInt64 = 0
    private var isBelowReserve = false

    init(of directory: String, reserveBytes: UInt64) {
        self.directory = directory
        self.reserveBytes = reserveBytes
    }

    /// Time of the next check that is due even if nothing is written, in milliseconds; `nil` while
    /// there is room.
    var nextCheckMs: UInt64? { isBelowReserve ? dueMs : nil }

    /// Checks if it is time, and reports to the outbox.
    mutating func checkIfDue(_ now: UInt64, _ outbox: StoreOutbox) {
        guard now >= dueMs else { return }
        dueMs = now + Self.intervalMs
        var status = statvfs()
        guard statvfs(directory, &status) == 0 else { return }
        let free = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        let isBelowReserve = free < reserveBytes
        self.isBelowReserve = isBelowReserve
        outbox.update { figures in
            figures.freeBytes = free
            figures.isBelowReserve = isBelowReserve
        }
    }
}
