import Store

/// An ended session with stored messages of shared subscriptions, which other members get.
///
/// The store has marked it as ended, so that a restart continues. No client can attach to it.
package struct EndedSession {
    package let number: UInt64
    /// The client identifier, for the log.
    package let clientID: [UInt8]
    /// The first position that has not been read yet.
    package var from: UInt64 = 0
    /// Positions below may have been sent to the client.
    package let horizon: UInt64
    /// The end of the queue: all positions are below.
    package let below: UInt64
    /// Messages read so far that neither the client nor another member gets.
    package var lost: UInt64 = 0

    /// Created from the store's record at a start.
    package init(_ stored: StoredSession) {
        number = stored.number
        clientID = [UInt8](stored.clientID)
        horizon = stored.horizon
        below = stored.end
    }

    /// `nil` when the session's queue in the store holds no messages of shared subscriptions.
    package init?(_ session: Session) {
        guard session.holdsShared, !session.outbound.isEmpty else { return nil }
        number = session.number
        clientID = session.clientID.array
        horizon = session.outbound.firstStored
        below = session.outbound.end
    }
}

/// Ended sessions whose queues must still be read, few at a time, as many may end at once.
package struct EndedSessions {
    private static let mostUnderWay = 4
    /// Messages and bytes of one read.
    private static let messagesPerRead = 64
    private static let bytesPerRead = 256 * 1_024

    private var waiting: [EndedSession] = []
    /// Sessions that the store is reading, by number.
    private var underWay: [UInt64: EndedSession] = [:]

    /// True when a queue can be read now.
    package var hasWork: Bool { !waiting.isEmpty && underWay.count < Self.mostUnderWay }

    package mutating func add(_ session: EndedSession) { waiting.append(session) }

    /// The next read to submit; `nil` without one.
    package mutating func nextRead() -> QueueRead? {
        guard underWay.count < Self.mostUnderWay, let next = waiting.popLast() else { return nil }
        underWay[next.number] = next
        return QueueRead(
            session: next.number, from: next.from, below: next.below,
            maxMessages: Self.messagesPerRead, maxBytes: Self.bytesPerRead,
            tag: ReadTag.ended.encoded, ticket: 0)
    }

    /// Takes the session of a completed read; the caller adds it again unless it is finished.
    package mutating func take(_ number: UInt64) -> EndedSession? {
        underWay.removeValue(forKey: number)
    }
}
