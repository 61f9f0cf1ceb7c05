/// Counts for the client's report; they only rise, across restarts of the program. What is
/// acknowledged, told or taken over is counted in the frame that stores that; a kill costs what was
/// counted of QoS 0 and of lost connections since the last connection's end.
package struct ClientCounters: Hashable, Sendable {
    /// Messages that the app has acknowledged, or that came with QoS 0, and duplicates.
    package var received: UInt64 = 0
    /// Messages that had come before, which the app did not get again.
    package var duplicates: UInt64 = 0
    /// Sequences that were told to the app as lost, in all channels.
    package var losses: UInt64 = 0
    /// Messages of QoS 0 that found the buffer full.
    package var droppedAtMostOnce: UInt64 = 0
    /// Connections that the broker accepted.
    package var connects: UInt64 = 0
    /// Connections that ended although the client wanted to go on.
    package var lostConnections: UInt64 = 0
    /// Sessions that the broker no longer had.
    package var lostSessions: UInt64 = 0
    /// Messages of QoS 1 and 2 that the broker has taken over.
    package var published: UInt64 = 0
    /// Start of the counters in milliseconds since 1970; 0 before the first connection.
    package var sinceUnixMilliseconds: Int64 = 0

    package init() {}

    func adding(_ other: ClientCounters) -> ClientCounters {
        ClientCounters(
            counts: zip(counts, other.counts).map { $0 &+ $1 },
            sinceUnixMilliseconds: max(sinceUnixMilliseconds, other.sinceUnixMilliseconds))
    }
}

extension ClientCounters {
    static let countsStored = 8

    /// The counts in the order in which they are stored.
    var counts: [UInt64] {
        [
            received, duplicates, losses, droppedAtMostOnce, connects, lostConnections,
            lostSessions, published,
        ]
    }

    /// Restores what ``counts`` gave; `counts` has ``countsStored`` elements.
    init(counts: [UInt64], sinceUnixMilliseconds: Int64) {
        precondition(counts.count == Self.countsStored, "\(counts.count) counts")
        received = counts[0]
        duplicates = counts[1]
        losses = counts[2]
        droppedAtMostOnce = counts[3]
        connects = counts[4]
        lostConnections = counts[5]
        lostSessions = counts[6]
        published = counts[7]
        self.sinceUnixMilliseconds = sinceUnixMilliseconds
    }
}
