import HermesClientCore

extension HermesClient {
    /// What the client has counted since ``sinceMilliseconds``, across restarts of the program. A
    /// kill costs only what was counted of QoS 0, and of connections lost, in the last connection.
    public struct Statistics: Hashable, Sendable {
        /// Messages that the app has acknowledged, or that came with QoS 0, and duplicates.
        public var received: UInt64 = 0
        /// Messages that had come before, which the app did not get again.
        public var duplicates: UInt64 = 0
        /// Sequences that were told as lost.
        public var losses: UInt64 = 0
        /// Messages of QoS 0 that found the buffer full.
        public var droppedAtMostOnce: UInt64 = 0
        /// Connections that the broker accepted.
        public var connects: UInt64 = 0
        /// Connections that ended although the client wanted to go on.
        public var lostConnections: UInt64 = 0
        /// Sessions that the broker no longer had.
        public var lostSessions: UInt64 = 0
        /// Messages of QoS 1 and 2 that the broker has taken over.
        public var published: UInt64 = 0
        /// Messages of QoS 1 and 2 that it has not yet taken over.
        public var unacknowledgedPublishes = 0
        /// Seconds of silence before a PINGREQ, on the present network.
        public var heartbeatSeconds = 0
        /// Start of the counters: UNIX time in milliseconds, 0 before the first connection.
        public var sinceMilliseconds: Int64 = 0
    }
}

extension HermesClient.Statistics {
    init(_ counters: ClientCounters, heartbeatSeconds: Int, unacknowledgedPublishes: Int) {
        received = counters.received
        duplicates = counters.duplicates
        losses = counters.losses
        droppedAtMostOnce = counters.droppedAtMostOnce
        connects = counters.connects
        lostConnections = counters.lostConnections
        lostSessions = counters.lostSessions
        published = counters.published
        sinceMilliseconds = counters.sinceUnixMilliseconds
        self.heartbeatSeconds = heartbeatSeconds
        self.unacknowledgedPublishes = unacknowledgedPublishes
    }
}
