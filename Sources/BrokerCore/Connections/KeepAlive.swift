import Structures

/// The keep alive check of one connection.
package struct KeepAlive: BitwiseCopyable {
    /// Arrival of the last complete packet, or the end of a pause in reading.
    package private(set) var lastPacket = MonotonicTime(milliseconds: 0)
    /// Milliseconds; 0 turns the check off.
    package private(set) var interval: UInt32 = 0

    /// Sets the interval from CONNECT, in milliseconds.
    package mutating func begin(interval: UInt32) { self.interval = interval }

    package mutating func heard(at now: MonotonicTime) { lastPacket = now }

    /// True after 1.5 times the keep alive without a packet [MQTT-3.1.2-24]; never during a pause.
    package func isOverdue(at now: MonotonicTime, isPaused: Bool) -> Bool {
        guard interval > 0, !isPaused else { return false }
        return now.milliseconds(since: lastPacket) >= patience
    }

    /// The time of the next check; `nil` when there is nothing to check.
    package func nextCheck(at now: MonotonicTime, isPaused: Bool) -> MonotonicTime? {
        guard interval > 0 else { return nil }
        return (isPaused ? now : lastPacket).advanced(byMilliseconds: patience)
    }

    private var patience: UInt64 { UInt64(interval) * 3 / 2 }
}
