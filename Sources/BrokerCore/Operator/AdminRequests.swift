import BrokerAPI
import MQTTCodec
import MQTTCore
import Store

/// Requests of the admin plane that wait: for a commit, for the store, for their turn; and the numbers of the
/// channels in which it publishes.
struct AdminRequests {
    /// A question about a queue that waits for the store.
    private struct Question {
        /// The messages in memory, before those that the store has.
        var page: QueuePage
        /// Positions from this one on wait; messages below may have been sent.
        let firstWaiting: UInt64
        let reply: Reply<QueuePage?>
    }

    /// Topics and payloads that one page brings from the store, in bytes.
    private static let pageBytes = 1 << 20

    private var number: UInt64 = 0
    /// By number: called with false when the shard stops before the commit.
    private var replies: [UInt64: @Sendable (Bool) -> Void] = [:]
    private var questions: [UInt64: Question] = [:]
    /// Lists of clients that are being made, one after the other.
    private var listings: [ClientListing] = []
    /// The last number of each channel.
    private var sequences: [[UInt8]: UInt64] = [:]

    /// Whether a list of clients goes on without any event.
    var hasWork: Bool { !listings.isEmpty }

    // MARK: Commits

    /// Calls `reply` with true after the commit whose action names the number returned.
    mutating func awaitCommit(_ reply: @escaping @Sendable (Bool) -> Void) -> UInt64 {
        number += 1
        replies[number] = reply
        return number
    }

    mutating func committed(_ number: UInt64) { replies.removeValue(forKey: number)?(true) }

    // MARK: Queues

    /// Asks the store for the rest of a page; returns the read to submit.
    mutating func ask(
        _ page: QueuePage, of session: Session, from: UInt64, limit: Int,
        _ reply: @escaping Reply<QueuePage?>
    ) -> QueueRead {
        number += 1
        questions[number] = Question(
            page: page, firstWaiting: session.outbound.firstStored, reply: reply)
        return QueueRead(
            session: session.number, from: from, below: session.outbound.end,
            maxMessages: limit - page.messages.count, maxBytes: Self.pageBytes,
            tag: ReadTag.question(number).encoded, ticket: 0)
    }

    /// The store has read what a question waits for.
    mutating func answer(_ number: UInt64, _ slice: QueueSlice) {
        guard var question = questions.removeValue(forKey: number) else { return }
        if let failure = slice.failure {
            question.reply(.failure(.unreadable("\(failure)")))
            return
        }
        let firstWaiting = question.firstWaiting
        slice.forEach { item in
            question.page.messages.append(
                QueuedMessage(item, isWaiting: item.position >= firstWaiting))
        }
        if slice.next < slice.request.below { question.page.next = "\(slice.next)" }
        question.reply(.success(question.page))
    }

    // MARK: Channels

    /// The next number of a channel.
    mutating func nextNumber(inChannel channel: [UInt8]) -> UInt64 {
        let number = (sequences[channel] ?? 0) + 1
        sequences[channel] = number
        return number
    }

    mutating func restore(channel: [UInt8], number: UInt64) { sequences[channel] = number }

    // MARK: Lists of clients

    mutating func add(_ listing: ClientListing) { listings.append(listing) }

    /// Takes out the list that is made now; ``putBack(_:)`` when it is not finished.
    mutating func takeListing() -> ClientListing? {
        listings.isEmpty ? nil : listings.removeFirst()
    }

    mutating func putBack(_ listing: ClientListing) { listings.insert(listing, at: 0) }

    // MARK: The end

    /// The shard stops: every request that waits is told so.
    mutating func abandonAll() {
        for reply in replies.values { reply(false) }
        replies.removeAll()
        for question in questions.values { question.reply(.failure(.stopping)) }
        questions.removeAll()
        for listing in takeAll(&listings) { listing.reply(.failure(.stopping)) }
    }
}

extension QueuedMessage {
    init(_ listed: OutboundQueue.Listed) {
        let state: QueuedMessage.State =
            switch listed.state {
            case .waiting: .waiting
            case .inFlight: .inFlight
            case .released: .released
            }
        self.init(
            position: listed.position, state: state,
            topic: listed.message.map { String(decoding: $0.topic, as: UTF8.self) },
            qos: Int(listed.qos.rawValue), retain: listed.retain,
            payloadBytes: listed.message?.payload.count ?? 0,
            expiresAtMs: listed.message.flatMap { $0.expiresAtMs == 0 ? nil : $0.expiresAtMs })
    }

    fileprivate init(_ item: QueueSlice.Item, isWaiting: Bool) {
        self.init(
            position: item.position,
            state: item.isReleased ? .released : isWaiting ? .waiting : .inFlight,
            topic: item.isReleased ? nil : String(decoding: item.topic, as: UTF8.self),
            qos: Int(item.qos), retain: item.retain, payloadBytes: item.payload.count,
            expiresAtMs: item.isReleased || item.expiresAtMs == 0 ? nil : item.expiresAtMs)
    }
}
