import Structures

/// When a client has been silent for too long.
struct KeepAlive: BitwiseCopyable {
    /// Milliseconds; 0 turns the check off.
    private(set) var interval: UInt32 = 0
    /// The arrival of the last complete packet, or the time at which the broker began to read again:
    /// before that the silence was the broker's.
    private(set) var lastPacket = MonotonicTime(milliseconds: 0)

    /// CONNECT has named the interval, in milliseconds.
    mutating func begin(interval: UInt32) { self.interval = interval }

    mutating func heard(at now: MonotonicTime) { lastPacket = now }

    /// One and a half times the keep alive without a packet [MQTT-3.1.2-24]; never while the broker does
    /// not read.
    func isOverdue(at now: MonotonicTime, isPaused: Bool) -> Bool {
        guard interval > 0, !isPaused else { return false }
        return now.milliseconds(since: lastPacket) >= patience
    }

    /// The time to look again; `nil` when there is nothing to check.
    func nextCheck(at now: MonotonicTime, isPaused: Bool) -> MonotonicTime? {
        guard interval > 0 else { return nil }
        return (isPaused ? now : lastPacket).advanced(byMilliseconds: patience)
    }

    private var patience: UInt64 { UInt64(interval) * 3 / 2 }
}
