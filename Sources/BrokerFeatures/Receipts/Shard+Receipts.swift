import BrokerAPI
import BrokerCore
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Receipts of messages of the admin plane.
///
/// The receipt and its receivers are in one group of records with their message, and the end of a
/// receiver in one with the end of its queue position.
extension Shard {
    /// Receivers of ended sessions that are ended in a turn.
    private static var orphansPerTurn: Int { 1_024 }

    // MARK: Following

    /// Begins the receipt of a message that is about to be routed; returns its place.
    mutating func addReceipt(of publication: Publication) -> UInt32 {
        publication.receiptID.withUnsafeBytes { messageID in
            publication.topic.withUnsafeBytes { topic in
                let place = features.receipts.add(
                    messageID: messageID, owner: publication.owner, topic: topic,
                    at: context.wallClockMs, pool: pool)
                commits.records.receipt(
                    features.receipts.records[place].number, atMs: context.wallClockMs,
                    messageID: messageID, owner: publication.owner, topic: topic)
                return place
            }
        }
    }

    /// Follows a message that gets this position in a session's queue.
    mutating func addReceiver(
        _ message: RoutedMessage, _ session: UInt32, _ position: UInt64
    ) {
        let place = features.receipts.follow(
            message.follower, session: sessions[session].number, position: position,
            client: clientID(of: session))
        record(place, position, isNew: true)
        noteGroup(message.group, of: place)
    }

    /// Notes the end of a message that gets no queue position.
    mutating func addEnded(_ message: RoutedMessage, _ session: UInt32, _ end: QueueEnd) {
        let place = features.receipts.add(
            message.follower, session: sessions[session].number, client: clientID(of: session))
        record(place, 0, isNew: true)
        noteGroup(message.group, of: place)
        endReceiver(place, end)
    }

    /// Another member of the group gets the message of a receiver, which is that member from now on.
    mutating func moveReceiver(_ place: UInt32, _ session: UInt32, _ position: UInt64) {
        features.receipts.receivers[place].client.destroy(in: pool)
        features.receipts.receivers[place].client = clientID(of: session)
        features.receipts.move(place, session: sessions[session].number, position: position)
        record(place, position, isNew: false)
    }

    /// Another member of the group was to get the message, which ended without a queue position.
    mutating func endMoved(_ place: UInt32, _ session: UInt32, _ end: QueueEnd) {
        moveReceiver(place, session, 0)
        endReceiver(place, end)
    }

    private func clientID(of session: UInt32) -> CompactBytes {
        sessions[session].clientID.withBytes { CompactBytes($0, pool: pool) }
    }

    private mutating func record(_ place: UInt32, _ position: UInt64, isNew: Bool) {
        let receiver = features.receipts.receivers[place]
        receiver.client.withBytes {
            commits.records.receiptReceiver(
                receipt: features.receipts.records[receiver.receipt].number,
                of: features.receipts.records[receiver.receipt].factOwner, place: receiver.place,
                session: receiver.session, position: position, clientID: $0, isNew: isNew)
        }
    }

    /// Notes the group as whose member a receiver gets the message. One with a very long filter is not
    /// named, for clients choose how long it is.
    private mutating func noteGroup(_ group: UInt32, of place: UInt32) {
        guard group != noIndex else { return }
        let filter = subscriptions.filter(of: group)
        if filter.count <= ReceiverDetail.mostBytes { filter.withBytes { note($0, of: place) } }
    }

    private mutating func note(_ detail: UnsafeRawBufferPointer, of place: UInt32) {
        let receiver = features.receipts.receivers[place]
        guard detail.count > 0, receiver.detail.isEmpty else { return }
        features.receipts.receivers[place].detail = CompactBytes(detail, pool: pool)
        commits.records.receiptDetail(
            receipt: features.receipts.records[receiver.receipt].number,
            of: features.receipts.records[receiver.receipt].factOwner, place: receiver.place, detail
        )
    }

    // MARK: Ends

    /// Ends the receiver of a queue position, if a receipt follows it.
    mutating func endReceiver(_ session: UInt32, _ position: UInt64, _ end: QueueEnd) {
        guard
            let place = features.receipts.find(
                session: sessions[session].number, position: position)
        else { return }
        if end == .dropped(.replaced) {
            features.collapse.replacing.withUnsafeBytes { note($0, of: place) }
        }
        endReceiver(place, end)
    }

    /// Ends an open receiver.
    mutating func endReceiver(_ place: UInt32, _ end: QueueEnd) { noteEnd(place, end.outcome) }

    private mutating func noteEnd(_ place: UInt32, _ end: (ReceiverOutcome, ReceiverReason)) {
        let ended = features.receipts.end(
            place, end.0, end.1, at: context.wallClockMs,
            ticket: commits.isDurable ? commits.nextTicket : 0,
            keepsEvents: context.limits.keepsReceiptEvents)
        commits.records.receiptEnded(ended)
    }

    /// Ends receivers of ended sessions, and drops receipts that are too old or too many; a slice of
    /// each in a turn.
    mutating func endAndDropReceipts() {
        var left = Self.orphansPerTurn
        while left > 0, let place = features.receipts.lists.nextOrphan() {
            noteEnd(place, (.dropped, .sessionEnded))
            left -= 1
        }
        let drops = features.receipts.drop(
            limit: context.limits.receipts, at: context.wallClockMs, pool: pool)
        guard drops.hasBegun else { return }
        for number in drops.numbers { commits.records.receiptDropped(number) }
        commits.records.receiptProgress(features.receipts.progress)
    }

    // MARK: Answers

    /// The receipt of a message; `nil` without one.
    public func receipt(of name: OwnedName) -> MessageReceipt? {
        guard let place = features.receipts.findAny(name) else { return nil }
        let record = features.receipts.records[place]
        var list: [MessageReceipt.Receiver]?
        if record.counts.receivers <= MessageReceipt.mostListed {
            list = []
            var next = record.firstReceiver
            while next != noIndex {
                list?.append(describe(features.receipts.receivers[next]))
                next = features.receipts.receivers[next].next
            }
        }
        return MessageReceipt(
            messageID: String(decoding: name.name, as: UTF8.self),
            topic: String(decoding: record.topic.array, as: UTF8.self),
            publishedAtMs: record.atMs, counts: record.counts.counts, receivers: list)
    }

    private func describe(_ receiver: Receiver) -> MessageReceipt.Receiver {
        let state: MessageReceipt.Receiver.State =
            switch receiver.outcome {
            case .open: isSent(receiver) ? .sent : .queued
            case .acknowledged: .acknowledged
            case .sent: .sent
            case .expired: .expired
            case .dropped: .dropped
            }
        return MessageReceipt.Receiver(
            clientID: String(decoding: receiver.client.array, as: UTF8.self), state: state,
            reason: receiver.reason.name, atMs: receiver.outcome == .open ? nil : receiver.atMs,
            group: receiver.group, replacedBy: receiver.replacement)
    }

    /// True when the message of an open receiver is in flight; of an offline client, perhaps sent.
    private func isSent(_ receiver: Receiver) -> Bool {
        guard let session = receiver.client.withBytes({ sessions.find($0) }),
            sessions[session].number == receiver.session
        else { return false }
        let queue = sessions[session].outbound
        guard receiver.position < queue.firstStored else { return false }
        var isSent = true
        queue.forEachListed(from: receiver.position) { listed in
            if listed.position == receiver.position { isSent = listed.state != .waiting }
            return false
        }
        return isSent
    }

    // MARK: Events

    /// Answers with the first events after a number, at most `most`, once some are stored; with none
    /// after a while.
    public mutating func receiptEvents(
        after number: UInt64, most: Int, reply: @escaping Reply<[ReceiptEvent]>
    ) {
        features.receipts.events.await(after: number, most: most, at: context.now, reply)
    }

    /// Drops the events up to a number, for good once that is stored.
    public mutating func takeReceiptEvents(through number: UInt64) {
        if features.receipts.takeEvents(through: number) {
            commits.records.receiptProgress(features.receipts.progress)
        }
    }

    /// Answers the request for events, if there are any or its time has come.
    mutating func answerReceiptEvents() {
        guard let deadline = features.receipts.events.deadline else { return }
        let (number, most) = features.receipts.events.request
        let events = features.receipts.events(after: number, most: most) {
            commits.areCommitted(through: $0)
        }
        if !events.isEmpty || deadline <= context.now {
            features.receipts.events.answer(.success(events))
        }
    }

    // MARK: Restoring

    /// Restores a receiver. One whose session is gone was a clean session's, or the broker ended
    /// before it noted the end of the session.
    mutating func restoreReceiver(_ stored: StoredReceiver, _ end: ReceiverEnd) {
        guard let receipt = features.receipts.restored(stored.receipt) else { return }
        let client = stored.clientID.withUnsafeBytes { CompactBytes($0, pool: pool) }
        if end.outcome != ReceiverOutcome.open.rawValue {
            let place = features.receipts.add(receipt, session: stored.session, client: client)
            features.receipts.restore(end, of: place)
        } else {
            _ = features.receipts.follow(
                receipt, session: stored.session, position: stored.position, client: client)
            if let session = restoration.find(stored.session) {
                sessions[session].follows = true
            } else if !restoration.leavesQueue(stored.session) {
                features.receipts.sessionEnded(stored.session)
            }
        }
    }
}

extension ShowReceipt: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<MessageReceipt?>) {
        reply(.success(shard.receipt(of: name)))
    }
}
