import BrokerAPI
import BrokerCore
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Messages of the admin plane that are published later.
///
/// A message is published and its schedule removed in one group of records, so that it is published
/// once, also after a crash.
extension Shard {
    /// Due messages in a group of publications: at most so many, and this many bytes and one more.
    private static var mostInGroup: Int { 256 }
    private static var groupBytes: Int { 1 << 18 }
    /// The wall clock may be set, so it is compared at least so often.
    private static var longestWaitMs: Int64 { 1_000 }
    /// Places that a page looks at.
    private static var placesPerPage: UInt32 { 16_384 }

    // MARK: Scheduling

    /// Keeps a message until its time.
    mutating func schedule(
        _ publication: Publication, _ time: MessageSchedule
    ) -> (outcome: PublishOutcome, needsCommit: Bool) {
        guard publication.receiptID.isEmpty || context.limits.receipts > 0 else {
            return (.receiptsAreOff, false)
        }
        guard !commits.holdsMessages else { return (.refused(.storeRefuses), false) }
        let name = OwnedName(time.messageID, of: publication.owner)
        guard features.scheduled.find(name) == nil else {
            return (.alreadyScheduled, false)
        }
        let bytes = publication.topic.count + publication.storedPayload.count + time.messageID.count
        guard
            SharedLimit.admits(
                1, own: features.scheduled.counts.taken(by: name.owner),
                total: features.scheduled.count, limit: context.limits.scheduled),
            hasScheduledBytes(bytes, of: name.owner)
        else { return (.tooManyScheduled, false) }
        let stored = StoredScheduled(
            number: features.scheduled.nextNumber(), dueMs: time.deliverAtMs,
            expiresInMs: time.expiresInMs, messageID: time.messageID, owner: name.owner,
            topic: publication.topic, payload: publication.storedPayload,
            qos: publication.storedQoS, retain: publication.retain,
            isFollowed: !publication.receiptID.isEmpty)
        features.scheduled.insert(stored, pool: pool)
        commits.records.scheduled(stored)
        keepKey(of: publication, PublishCounts())
        return (.scheduled(deliverAtMs: time.deliverAtMs), true)
    }

    /// True when the bytes of scheduled messages and pushes, of all and of an owner, may grow by
    /// `bytes`.
    func hasScheduledBytes(_ bytes: Int, of owner: OwnerID) -> Bool {
        SharedLimit.admits(
            bytes,
            own: features.scheduled.byteCounts.taken(by: owner)
                + features.pushes.byteCounts.taken(by: owner),
            total: features.scheduled.bytes + features.pushes.bytes,
            limit: context.limits.scheduledBytes)
    }

    // MARK: Firing

    /// The time of the turn that has to look for due messages; `nil` without any.
    var scheduledDue: MonotonicTime? {
        guard let due = features.scheduled.firstDueMs else { return nil }
        let isHeld = features.scheduled.inGroup > 0 || commits.holdsMessages
        let wait = isHeld ? Self.longestWaitMs : due - context.wallClockMs
        return context.now.advanced(
            byMilliseconds: UInt64(min(max(wait, 0), Self.longestWaitMs)))
    }

    /// Hands due messages to a group of publications, unless an earlier one still has some.
    mutating func collectDue() {
        guard features.scheduled.inGroup == 0, !commits.holdsMessages else { return }
        var group: [Publication] = []
        var (taken, bytes) = (0, 0)
        while taken < Self.mostInGroup, bytes < Self.groupBytes,
            let place = features.scheduled.popDue(at: context.wallClockMs)
        {
            taken += 1
            let record = features.scheduled.records[place]
            let isExpired = record.isExpired(at: context.wallClockMs)
            // One that is followed goes its way, so that its receipt names who would have got it.
            guard !isExpired || record.isFollowed && context.limits.receipts > 0 else {
                noteExpired(record)
                commits.records.scheduledEnded(record.number, of: record.factOwner)
                features.scheduled.remove(place, pool: pool)
                continue
            }
            bytes += record.bytes
            group.append(Publication(record))
        }
        guard !group.isEmpty else { return }
        features.scheduled.inGroup = group.count
        publishGroup(group) { _ in }
    }

    /// Has the log tell of a message whose time was over before it was published.
    private mutating func noteExpired(_ record: ScheduledMessages.Record) {
        features.scheduled.expired += 1
        context.notices.appendBounded(
            .scheduledExpired(messageID: record.messageID.array, ReportedMessage(record.message)))
    }

    /// Publishes a message that was due, unless it was cancelled or moved meanwhile.
    mutating func fire(
        _ number: UInt64, _ publication: Publication, _ time: MessageSchedule
    ) -> (outcome: PublishOutcome, needsCommit: Bool) {
        features.scheduled.inGroup -= 1
        guard
            let place = features.scheduled.find(
                OwnedName(time.messageID, of: publication.owner)),
            features.scheduled.records[place].number == number,
            features.scheduled.records[place].heapPlace == noIndex
        else { return (.published(PublishCounts()), false) }
        var publication = publication
        if context.limits.receipts == 0 { publication.receiptID = [] }
        let outcome = publishNow(publication, mustCommit: true).outcome
        if case .refused = outcome {
            features.scheduled.wait(place)
            return (outcome, false)
        }
        let isExpired = features.scheduled.records[place].isExpired(at: context.wallClockMs)
        if isExpired { noteExpired(features.scheduled.records[place]) }
        commits.records.scheduledEnded(number, of: features.scheduled.records[place].factOwner)
        features.scheduled.remove(place, pool: pool)
        if !isExpired { features.scheduled.fired += 1 }
        return (outcome, true)
    }

    // MARK: Answers

    /// The scheduled message of an identifier; `nil` without one.
    public func scheduledMessage(_ name: OwnedName) -> ScheduledMessage? {
        features.scheduled.findAny(name).map { ScheduledMessage(features.scheduled.records[$0]) }
    }

    /// A page of scheduled messages. It looks at a bounded number of places, so it may be short.
    public func scheduledMessages(from first: UInt32, limit: Int) -> ScheduledPage {
        var page = ScheduledPage()
        var place = first
        let end = features.scheduled.records.endIndex
        let stop = first < end ? first + min(end - first, Self.placesPerPage) : first
        while place < stop, page.messages.count < limit {
            let record = features.scheduled.records[place]
            if record.isTaken { page.messages.append(ScheduledMessage(record)) }
            place += 1
        }
        if place < end { page.next = "\(place)" }
        return page
    }

    /// Moves or cancels a scheduled message, and answers once that is stored: false without one.
    public mutating func changeScheduled(
        _ name: OwnedName, _ change: ScheduledChange, reply: @escaping Reply<Bool>
    ) {
        guard let place = features.scheduled.findAny(name) else {
            reply(.success(false))
            return
        }
        let number = features.scheduled.records[place].number
        let owner = features.scheduled.records[place].factOwner
        switch change {
        case .move(let dueMs):
            features.scheduled.move(place, toMs: dueMs)
            commits.records.scheduledMoved(number, of: owner, dueMs: dueMs)
        case .cancel:
            features.scheduled.remove(place, pool: pool)
            commits.records.scheduledEnded(number, of: owner)
        }
        commit(true, reply)
    }
}

extension Publication {
    /// True for a message that is to be kept until its time.
    var isKept: Bool { schedule.map { $0.number == nil } ?? false }

    /// A due message.
    fileprivate init(_ record: ScheduledMessages.Record) {
        self.init(
            topic: [UInt8](record.message.topic), payload: [UInt8](record.message.payload),
            qos: record.message.qos, retain: record.message.retain,
            expiresAtMs: record.expiresInMs > 0 ? record.dueMs + record.expiresInMs : nil)
        owner = record.owner
        wake = record.message.wakeRequest
        properties = [UInt8](record.message.properties)
        messageID = record.messageID.array
        if record.isFollowed { receiptID = messageID }
        schedule = MessageSchedule(
            messageID: messageID, deliverAtMs: record.dueMs, expiresInMs: record.expiresInMs,
            number: record.number)
    }
}

extension ScheduledMessage {
    fileprivate init(_ record: ScheduledMessages.Record) {
        self.init(
            messageID: String(decoding: record.messageID.array, as: UTF8.self),
            topic: String(decoding: record.message.topic, as: UTF8.self),
            qos: Int(record.message.qos.rawValue), retain: record.message.retain,
            payloadBytes: record.message.payload.count, deliverAtMs: record.dueMs,
            expiresInSeconds: record.expiresInMs > 0 ? record.expiresInMs / 1_000 : nil)
    }
}

extension ShowScheduled: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<ScheduledMessage?>) {
        reply(.success(shard.scheduledMessage(name)))
    }
}

extension ListScheduled: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<ScheduledPage>) {
        reply(.success(shard.scheduledMessages(from: from, limit: limit)))
    }
}

extension ChangeScheduled: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<Bool>) {
        shard.changeScheduled(name, change, reply: reply)
    }
}
