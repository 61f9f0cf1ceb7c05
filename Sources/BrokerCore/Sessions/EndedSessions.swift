import Store

/// A session that has ended while its queue in the store holds messages of shared subscriptions, which other
/// members get.
///
/// The store has marked it as ended, so that a start goes on with it; no client can find it again.
struct EndedSession {
    let number: UInt64
    /// The client's, for the log.
    let clientIdentifier: [UInt8]
    /// The first position that has not been read yet.
    var from: UInt64 = 0
    /// Positions below may have been sent to the client.
    let horizon: UInt64
    /// The queue ends before this position.
    let below: UInt64

    /// As the store holds it.
    init(_ stored: StoredSession) {
        number = stored.number
        clientIdentifier = [UInt8](stored.clientIdentifier)
        horizon = stored.horizon
        below = stored.end
    }

    /// `nil` when the session's queue in the store holds no messages of shared subscriptions.
    init?(_ session: Session) {
        guard session.holdsShared, !session.outbound.isEmpty else { return nil }
        number = session.number
        clientIdentifier = session.clientIdentifier.array
        horizon = session.outbound.firstStored
        below = session.outbound.end
    }
}

/// Ended sessions whose queues are still to be read, a few at a time: many sessions may end at once, and no
/// client is to notice.
struct EndedSessions {
    private static let mostUnderWay = 4
    /// The messages and bytes that one read brings.
    private static let messagesPerRead = 64
    private static let bytesPerRead = 256 * 1_024

    private var waiting: [EndedSession] = []
    /// Those that the store is reading, by their number.
    private var underWay: [UInt64: EndedSession] = [:]

    /// Whether a queue can be read now.
    var hasWork: Bool { !waiting.isEmpty && underWay.count < Self.mostUnderWay }

    mutating func add(_ session: EndedSession) { waiting.append(session) }

    /// The next read to submit; `nil` when none is due.
    mutating func nextRead() -> QueueRead? {
        guard underWay.count < Self.mostUnderWay, let next = waiting.popLast() else { return nil }
        underWay[next.number] = next
        return QueueRead(
            session: next.number, from: next.from, below: next.below,
            maxMessages: Self.messagesPerRead, maxBytes: Self.bytesPerRead,
            tag: ReadTag.ended.encoded, ticket: 0)
    }

    /// The store has read for this session, which the caller adds again or forgets.
    mutating func take(_ number: UInt64) -> EndedSession? { underWay.removeValue(forKey: number) }
}
