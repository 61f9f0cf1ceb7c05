import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Who a read of a queue is for, in the 64 bits that come back with its answer.
enum ReadTag {
    case connection(Handle)
    /// A question of the admin plane, by its number.
    case question(UInt64)
    /// A session that is over, by its number.
    case ended(UInt64)

    private static var questionFlag: UInt64 { 1 << 63 }
    private static var endedFlag: UInt64 { 3 << 62 }

    var encoded: UInt64 {
        switch self {
        case .connection(let handle): handle.packed
        case .question(let number): number | Self.questionFlag
        case .ended(let number): number | Self.endedFlag
        }
    }

    init(encoded: UInt64) {
        switch encoded & Self.endedFlag {
        case Self.endedFlag: self = .ended(encoded & ~Self.endedFlag)
        case Self.questionFlag: self = .question(encoded & ~Self.endedFlag)
        default: self = .connection(Handle(packed: encoded))
        }
    }
}

/// A question that waits for the store.
struct QueueQuestion {
    /// What was in memory, before what the store has.
    var page: QueuePage
    /// Positions from this one on wait; what is below may have been sent.
    var firstWaiting: UInt64
    var reply: Reply<QueuePage?>
}

/// An operator looks into queues, and empties them.
extension Shard {
    /// Topics and payloads that one page brings from the store, in bytes.
    private static var pageBytes: Int { 1 << 20 }
    /// Messages that one turn drops, so that a long queue stalls nobody.
    private static var dropsPerTurn: Int { 10_000 }

    // MARK: Looking

    /// A page of what a client is owed; its limit is at least 1.
    ///
    /// What is in memory is as of now, what the store adds as of everything submitted in this turn.
    package mutating func queue(
        _ query: QueueQuery, reply: @escaping Reply<QueuePage?>
    ) {
        guard let index = findSession(query.clientID) else {
            reply(.success(nil))
            return
        }
        let queue = sessions[index].outbound
        var page = QueuePage(clientID: query.clientID, messages: [])
        var next: UInt64?
        queue.forEachListed(from: query.from) { listed in
            guard page.messages.count < query.limit else {
                next = listed.position
                return false
            }
            page.messages.append(QueuedMessage(listed))
            return true
        }
        let from = max(query.from, queue.firstUnloaded)
        if next == nil, queue.isStoring, from < queue.end {
            guard page.messages.count == query.limit else {
                ask(index, from: from, below: queue.end, limit: query.limit, page, reply)
                return
            }
            next = from
        }
        page.next = next.map { "\($0)" }
        reply(.success(page))
    }

    private mutating func ask(
        _ index: UInt32, from: UInt64, below: UInt64, limit: Int, _ page: QueuePage,
        _ reply: @escaping Reply<QueuePage?>
    ) {
        replyNumber += 1
        queueQuestions[replyNumber] = QueueQuestion(
            page: page, firstWaiting: sessions[index].outbound.firstStored, reply: reply)
        reads.append(
            QueueRead(
                session: sessions[index].number, from: from, below: below,
                maxMessages: limit - page.messages.count, maxBytes: Self.pageBytes,
                tag: ReadTag.question(replyNumber).encoded, ticket: 0))
    }

    /// The store has read what a question waits for.
    mutating func answer(_ number: UInt64, _ slice: QueueSlice) {
        guard var question = queueQuestions.removeValue(forKey: number) else { return }
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

    // MARK: Dropping

    /// Drops what waits for a client, oldest first, and answers once that is stored; what is in flight
    /// stays. `bound` is `nil` at first, and then what the answer said.
    package mutating func dropQueue(
        of clientID: String, below bound: UInt64?, reply: @escaping Reply<QueueDrop?>
    ) {
        guard let index = findSession(clientID) else {
            reply(.success(nil))
            return
        }
        let before = sessions[index].outbound
        let bound = bound ?? before.end
        var count = 0
        while count < Self.dropsPerTurn {
            let firstStored = sessions[index].outbound.firstStored
            guard
                let position = sessions[index].outbound.dropOldest(below: bound, pool: pool)
            else { break }
            if position == firstStored { noteDropped(index, position) }
            finished(index, position)
            drop(index, .byOperator)
            count += 1
        }
        adjustTotals(index, from: before)
        let after = sessions[index].outbound
        let drop = QueueDrop(
            dropped: count, bound: bound, hasMore: count == Self.dropsPerTurn)
        guard count > 0, sessions[index].isPersistent else {
            reply(.success(drop))
            return
        }
        if after.firstStored != before.firstStored {
            writes.horizon(
                session: sessions[index].number,
                position: max(after.firstStored, sessions[index].loadBelow))
        }
        replyNumber += 1
        pendingReplies[replyNumber] = PendingReply(counts: PublishCounts()) { answer in
            reply(answer.map { _ in drop })
        }
        commit(.reply(replyNumber))
    }

    /// A message that only the store had is given up: if it is on its way already, it is not taken.
    mutating func noteDropped(_ session: UInt32, _ position: UInt64) {
        guard sessions[session].isLoading else { return }
        let number = sessions[session].number
        let first = droppedWhileLoading[number]?.lowerBound ?? position
        droppedWhileLoading[number] = first...position
    }
}

extension QueuedMessage {
    fileprivate init(_ listed: OutboundQueue.Listed) {
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
