import Structures
import Transport

/// TLS handshakes that wait for their clients, ordered by the time from which each may be replaced.
///
/// Only the client's time counts, not the time of steps and of waiting for a worker. Outdated
/// entries stay until they are first or outnumber the others. A handshake that returns from a long
/// step may be placed after one with a later time, and is then replaced later.
struct HandshakeOrder: ~Copyable {
    /// A handshake, and the time from which it may be replaced.
    struct Entry: BitwiseCopyable {
        var connection: Handle
        var endsAt: MonotonicTime
    }

    private struct Patience: BitwiseCopyable {
        var generation: UInt32
        var leftMilliseconds: UInt64
        var endsAt: MonotonicTime
    }

    /// A client's share of a handshake's time, after which a new connection may replace it. Over a
    /// bad network a handshake takes a second.
    static var patienceMilliseconds: UInt64 { 2_000 }

    private var entries = RingBuffer<Entry>()
    /// Unfinished handshakes, by connection index.
    private var patience: [UInt32: Patience] = [:]

    /// Number of entries, including outdated ones.
    var entryCount: Int { entries.count }

    mutating func begin(_ connection: Handle, at now: MonotonicTime) {
        patience[connection.index] = Patience(
            generation: connection.generation, leftMilliseconds: Self.patienceMilliseconds,
            endsAt: now)
        awaitClient(connection, at: now)
    }

    /// Stops the client's time: a step begins.
    mutating func beginStep(_ connection: Handle, at now: MonotonicTime) {
        guard let current = patience[connection.index],
            current.generation == connection.generation
        else { return }
        patience[connection.index]?.leftMilliseconds = current.endsAt.milliseconds(since: now)
    }

    /// Resumes the client's time: the next bytes are the client's.
    mutating func awaitClient(_ connection: Handle, at now: MonotonicTime) {
        guard let current = patience[connection.index],
            current.generation == connection.generation
        else { return }
        let endsAt = now.advanced(byMilliseconds: current.leftMilliseconds)
        patience[connection.index]?.endsAt = endsAt
        if entries.count >= 2 * patience.count + 64 { dropOutdated() }
        entries.append(Entry(connection: connection, endsAt: endsAt))
    }

    /// Forgets a handshake that has ended or whose connection closes.
    mutating func end(_ connection: Handle) {
        guard patience[connection.index]?.generation == connection.generation else { return }
        patience[connection.index] = nil
    }

    /// The first handshake that waits for its client.
    mutating func oldest(in reactor: borrowing Reactor) -> Entry? {
        oldest { reactor.awaitsClient($0) }
    }

    /// The first handshake that waits for its client, as confirmed by `awaitsClient`.
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
