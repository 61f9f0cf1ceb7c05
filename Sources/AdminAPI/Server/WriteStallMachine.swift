import NIOCore

/// Detects a client that takes no byte of an answer; reads no clock.
struct WriteStallMachine {
    private let limit: TimeAmount
    private var writtenBytes = 0
    private var stalled: (takenBytes: Int, since: NIODeadline)?

    init(limit: TimeAmount) {
        self.limit = limit
    }

    /// Notes bytes passed to the channel.
    mutating func write(_ count: Int) {
        writtenBytes += count
    }

    /// Handles the passing of time; the channel still holds `bufferedBytes`.
    ///
    /// - Returns: True when the client has taken nothing for the whole limit.
    mutating func tick(bufferedBytes: Int, at now: NIODeadline) -> Bool {
        let takenBytes = writtenBytes - bufferedBytes
        guard bufferedBytes > 0, let stalled, stalled.takenBytes == takenBytes else {
            stalled = bufferedBytes > 0 ? (takenBytes, now) : nil
            return false
        }
        return now >= stalled.since + limit
    }
}
