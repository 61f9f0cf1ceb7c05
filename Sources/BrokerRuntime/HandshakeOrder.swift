import Structures
import Transport

/// TLS handshakes that wait for their clients, in the order in which their patience ends, so that one
/// that has stalled can make room.
///
/// The time of our own steps does not count, nor that which they wait for a worker: a client is not
/// to blame for it. An entry whose client answered, or whose handshake is over, stays until it is the
/// oldest or until such entries are the most. A handshake that comes back after a long step may stand
/// behind one whose patience ends later, and then gives way later, too.
struct HandshakeOrder: ~Copyable {
    /// A handshake, and when it may have to give way.
    struct Entry: BitwiseCopyable {
        var connection: Handle
        var endsAt: MonotonicTime
    }

    private struct Patience: BitwiseCopyable {
        var generation: UInt32
        var leftMilliseconds: UInt64
        var endsAt: MonotonicTime
    }

    /// Whose client has taken longer than this gives its place to a newcomer: over a bad network a
    /// handshake takes a second.
    static var patienceMilliseconds: UInt64 { 2_000 }

    private var entries = RingBuffer<Entry>()
    /// By index of the connection; of handshakes that are not over.
    private var patience: [UInt32: Patience] = [:]

    /// Entries that are held, current or not.
    var entryCount: Int { entries.count }

    mutating func begin(_ connection: Handle, at now: MonotonicTime) {
        patience[connection.index] = Patience(
            generation: connection.generation, leftMilliseconds: Self.patienceMilliseconds,
            endsAt: now)
        awaitClient(connection, at: now)
    }

    /// The client has answered: from here on it is us who take time.
    mutating func beginStep(_ connection: Handle, at now: MonotonicTime) {
        guard let current = patience[connection.index],
            current.generation == connection.generation
        else { return }
        patience[connection.index]?.leftMilliseconds = current.endsAt.milliseconds(since: now)
    }

    /// We have answered, and the next step is the client's.
    mutating func awaitClient(_ connection: Handle, at now: MonotonicTime) {
        guard let current = patience[connection.index],
            current.generation == connection.generation
        else { return }
        let endsAt = now.advanced(byMilliseconds: current.leftMilliseconds)
        patience[connection.index]?.endsAt = endsAt
        if entries.count >= 2 * patience.count + 64 { dropOutdated() }
        entries.append(Entry(connection: connection, endsAt: endsAt))
    }

    /// The handshake is over, or its connection closes; also for a connection that had none.
    mutating func end(_ connection: Handle) {
        guard patience[connection.index]?.generation == connection.generation else { return }
        patience[connection.index] = nil
    }

    /// The first one that waits for its client.
    mutating func oldest(in reactor: borrowing Reactor) -> Entry? {
        oldest { reactor.awaitsClient($0) }
    }

    /// The first one that waits for its client, as `awaitsClient` has the last word on.
    mutating func oldest(where awaitsClient: (Handle) -> Bool) -> Entry? {
        while entries.count > 0 {
            let entry = entries[0]
            if isCurrent(entry), awaitsClient(entry.connection) { return entry }
            entries.removeFirst()
        }
        return nil
    }

    private func isCurrent(_ entry: Entry) -> Bool {
        guard let current = patience[entry.connection.index] else { return false }
        return current.generation == entry.connection.generation && current.endsAt == entry.endsAt
    }

    private mutating func dropOutdated() {
        for _ in 0..<entries.count {
            let entry = entries[0]
            entries.removeFirst()
            if isCurrent(entry) { entries.append(entry) }
        }
    }
}
