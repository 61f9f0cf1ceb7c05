/// Counts for the client's report; they only rise, across restarts of the program. They are
/// stored at the end of a connection and with each report; a kill costs the counts since then.
package struct ClientCounters: Hashable, Sendable {
    /// Messages that came, duplicates included.
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
