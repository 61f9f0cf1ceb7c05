import Reactor
import Structures

/// TLS handshakes in the order in which they began, so that one that has stalled can make room.
struct HandshakeOrder: ~Copyable {
    /// A handshake, and when it began.
    struct Entry: BitwiseCopyable {
        var connection: Handle
        var begunAt: MonotonicTime
    }

    /// Whoever has taken longer than this gives its place to a newcomer: over a bad network a handshake
    /// takes a second.
    static var patienceMilliseconds: UInt64 { 2_000 }

    /// Some are over: they leave once they are the oldest.
    private var entries = RingBuffer<Entry>()

    mutating func begin(_ connection: Handle, at now: MonotonicTime) {
        entries.append(Entry(connection: connection, begunAt: now))
    }

    /// The oldest one that is not over.
    mutating func oldest(in reactor: borrowing Reactor) -> Entry? {
        while entries.count > 0, !reactor.isShakingHands(entries[0].connection) {
            entries.removeFirst()
        }
        return entries.count > 0 ? entries[0] : nil
    }
}
