import BrokerAPI
import BrokerCore
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Requests of the admin plane that wait for a commit, for the store or for their turn, and the
/// sequence numbers of the channels.
struct AdminRequests {
    /// A query for a queue that waits for the store.
    private struct Question {
        /// The messages in memory; those in the store follow.
        var page: QueuePage
        /// Messages at this position and above wait; lower ones may have been sent.
        let firstWaiting: UInt64
        let reply: Reply<QueuePage?>
    }

    /// Bytes of topics and payloads that one page reads from the store.
    private static let pageBytes = 1 << 20

    private var number: UInt64 = 0
    /// By request number. Called with false when the shard stops before the commit.
    private var replies: [UInt64: @Sendable (Bool) -> Void] = [:]
    private var questions: [UInt64: Question] = [:]
    /// Lists of clients in progress; they are made one at a time.
    private var listings: [ClientListing] = []
    /// Lists of retained messages in progress; they too are made one at a time.
    private var retainedListings: [RetainedListing] = []
    /// Questions for the receivers of topics, which are answered in their order.
    private var receiversListings: [ReceiversListing] = []
    /// The last number given in each channel.
    private var sequences: [[UInt8]: UInt64] = [:]

    /// True when a list continues without any event.
    var hasWork: Bool { !listings.isEmpty || !retainedListings.isEmpty || awaitsReceivers }
    /// True while a question for receivers is not answered.
    var awaitsReceivers: Bool { !receiversListings.isEmpty }

    // MARK: Commits

    /// Calls `reply` with true after the commit; returns the number for that commit's action.
    mutating func awaitCommit(_ reply: @escaping @Sendable (Bool) -> Void) -> UInt64 {
        number += 1
        replies[number] = reply
        return number
    }

    mutating func committed(_ number: UInt64) { replies.removeValue(forKey: number)?(true) }

    // MARK: Queues

    /// Keeps a query until the store has read the rest of its page; returns the read to submit.
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
            tag: FeatureRead.question(number).tag.encoded, ticket: 0)
    }

    /// Answers a query with the part of the queue that the store has read.
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

    // MARK: Lists

    mutating func add(_ listing: ClientListing) { listings.append(listing) }

    /// Takes the list in progress; ``putBack(_:)`` returns it if it is unfinished.
    mutating func takeListing() -> ClientListing? {
        listings.isEmpty ? nil : listings.removeFirst()
    }

    mutating func putBack(_ listing: ClientListing) { listings.insert(listing, at: 0) }

    mutating func add(_ listing: RetainedListing) { retainedListings.append(listing) }

    /// Takes the list in progress; ``putBack(_:)`` returns it if it is unfinished.
    mutating func takeRetainedListing() -> RetainedListing? {
        retainedListings.isEmpty ? nil : retainedListings.removeFirst()
    }

    mutating func putBack(_ listing: RetainedListing) { retainedListings.insert(listing, at: 0) }

    mutating func add(_ listing: ReceiversListing) { receiversListings.append(listing) }

    /// The first question for receivers; ``removeReceiversListing()`` follows when it is answered.
    var firstReceiversListing: ReceiversListing? { receiversListings.first }

    mutating func removeReceiversListing() { receiversListings.removeFirst() }

    // MARK: The end

    /// Answers every waiting request with an error, because the shard stops.
    mutating func abandonAll(pool: BytePool) {
        for reply in replies.values { reply(false) }
        replies.removeAll()
        for question in questions.values { question.reply(.failure(.stopping)) }
        questions.removeAll()
        for listing in takeAll(&listings) { listing.reply(.failure(.stopping)) }
        for var listing in takeAll(&retainedListings) { listing.abandon(pool: pool) }
        for listing in takeAll(&receiversListings) { listing.reply(.failure(.stopping)) }
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
            expiresAtMs: listed.message.flatMap { $0.expiresAtMs == 0 ? nil : $0.expiresAtMs },
            messageID: listed.message.flatMap { Self.text($0.messageID) })
    }

    fileprivate init(_ item: QueueSlice.Item, isWaiting: Bool) {
        self.init(
            position: item.position,
            state: item.isReleased ? .released : isWaiting ? .waiting : .inFlight,
            topic: item.isReleased ? nil : String(decoding: item.topic, as: UTF8.self),
            qos: Int(item.qos), retain: item.retain,
            payloadBytes: StoredContent(item.payload, StoredQoS(byte: item.publishedQoS)).payload
                .count,
            expiresAtMs: item.isReleased || item.expiresAtMs == 0 ? nil : item.expiresAtMs,
            messageID: Self.text(item.messageID))
    }

    /// An identifier as text; `nil` without one.
    private static func text(_ messageID: UnsafeRawBufferPointer) -> String? {
        messageID.isEmpty ? nil : String(decoding: messageID, as: UTF8.self)
    }
}
