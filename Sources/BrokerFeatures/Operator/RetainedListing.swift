import BrokerAPI
import BrokerCore
import MQTTCore
import Structures

/// One page of the list of retained messages while it is made: the first topics after a cursor, in
/// the order of their bytes.
///
/// The tree of topics is not sorted, so a page walks over all that match, in slices. It holds a
/// reference to each message that may be on the page.
struct RetainedListing {
    /// Bytes of the topics of a page; a page ends early before it has more.
    private static let mostBytes = 1 << 20

    let reply: Reply<RetainedPage>
    var cursor: RetainedCursor
    private let limit: Int
    private var selection: PageSelection<Message>

    init(_ query: RetainedQuery, _ cursor: RetainedCursor, reply: @escaping Reply<RetainedPage>) {
        self.reply = reply
        self.cursor = cursor
        limit = query.limit
        selection = PageSelection(
            after: SortKey(query.cursor, isRanked: false), limit: query.limit)
    }

    /// Keeps a message if it may be on the page; false when that took one comparison.
    mutating func offer(_ message: Message, _ hash: KeyedHash, pool: BytePool) -> Bool {
        let topic = message.topic
        // Rejects most without an allocation.
        guard topic.count > SortKey.prefixBytes || selection.mayHold(topic) else { return false }
        message.retainReference()
        selection.offer(SortKey(topic, hash), message) { $0.release(in: pool) }
        return true
    }

    /// Answers with the page, once all messages were offered.
    mutating func finish(pool: BytePool) {
        var (page, hasMore) = selection.finish { $0.release(in: pool) }
        var bytes = 0
        for (place, candidate) in page.enumerated() {
            bytes += candidate.item.topic.count
            guard place > 0, bytes > Self.mostBytes else { continue }
            for left in page[place...] { left.item.release(in: pool) }
            page.removeLast(page.count - place)
            hasMore = true
            break
        }
        let next = hasMore ? page.last?.key.cursor(isRanked: false) : nil
        let summaries = page.map { RetainedSummary($0.item) }
        for candidate in page { candidate.item.release(in: pool) }
        reply(.success(RetainedPage(retained: summaries, next: next)))
    }

    /// Gives up what it holds, because the shard stops.
    mutating func abandon(pool: BytePool) {
        let (page, _) = selection.finish { $0.release(in: pool) }
        for candidate in page { candidate.item.release(in: pool) }
        reply(.failure(.stopping))
    }
}

extension RetainedSummary {
    init(_ message: Message) {
        self.init(
            topic: String(decoding: message.topic, as: UTF8.self), qos: Int(message.qos.rawValue),
            payloadBytes: message.payload.count,
            expiresAtMs: message.expiresAtMs == 0 ? nil : message.expiresAtMs)
    }
}
