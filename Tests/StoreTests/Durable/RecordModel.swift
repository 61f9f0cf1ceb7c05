import HermesTesting

@testable import Store

extension StoreModel {
    /// Without values that may differ between two correct results: the segment, and the offline
    /// time of an attached client. Also without message numbers, which a queue does not return.
    var comparable: StoreModel {
        var model = self
        model.progress.appliedSegment = 0
        // Within a bucket they have no order.
        model.publishKeys.sort { ($0.bucket, $0.key) < ($1.bucket, $1.key) }
        for (number, session) in model.sessions {
            if session.isAttached || session.hasEnded {
                model.sessions[number]?.detachedSinceMs = 0
            }
            for position in session.queue.keys {
                model.sessions[number]?.queue[position]?.message.number = 0
            }
        }
        return model
    }

    /// A session's queue within bounds, by position.
    func items(of session: UInt64, from: UInt64, below: UInt64) -> [QueueItem] {
        guard from < below, let queue = sessions[session]?.queue else { return [] }
        return queue.keys.filter { $0 >= from && $0 < below }.sorted().compactMap { position in
            queue[position].map { QueueItem(position, $0) }
        }
    }
}

/// A queued message with its own copy of the bytes.
struct QueueItem: Equatable {
    var position: UInt64
    var topic: [UInt8]
    var payload: [UInt8]
    var qos: UInt8
    var retain: Bool
    var published: [UInt8]
    var expiresAtMs: Int64
    var isReleased: Bool
    var shared: [UInt8]
    var messageID: [UInt8]

    init(_ position: UInt64, _ row: StoreModel.Row) {
        self.position = position
        topic = row.message.topic
        payload = row.message.payload
        qos = row.qos
        retain = row.retain
        published =
            row.isReleased ? [] : [row.message.qos, row.message.retain ? 1 : 0]
        expiresAtMs = row.isReleased ? 0 : row.message.expiresAtMs
        isReleased = row.isReleased
        shared = row.shared
        messageID = row.message.messageID
    }

    init(_ item: QueueSlice.Item) {
        position = item.position
        topic = [UInt8](item.topic)
        payload = [UInt8](item.payload)
        qos = item.qos
        retain = item.retain
        published = item.isReleased ? [] : [item.publishedQoS, item.publishedRetain ? 1 : 0]
        expiresAtMs = item.isReleased ? 0 : item.expiresAtMs
        isReleased = item.isReleased
        shared = [UInt8](item.shared)
        messageID = [UInt8](item.messageID)
    }
}

extension QueueSlice {
    /// Returns the positions as rows of a model; their messages have the number 0.
    func forEachRow(_ body: (UInt64, StoreModel.Row) -> Void) {
        for item in items {
            let message = StoreModel.Message(
                number: 0, topic: item.topic, payload: item.payload,
                qos: item.published.first ?? 0, retain: item.published.last == 1,
                expiresAtMs: item.expiresAtMs, messageID: item.messageID)
            var row = StoreModel.Row(
                message: message, qos: item.qos, retain: item.retain, isReleased: false,
                shared: item.shared)
            if item.isReleased { row.release() }
            body(item.position, row)
        }
    }

    var items: [QueueItem] {
        var items: [QueueItem] = []
        forEach { items.append(QueueItem($0)) }
        return items
    }
}

/// A model of the content that a store restores, without queues.
struct ModelVisitor: StoreVisitor {
    var model = StoreModel()
    /// The size of each session's queue, as the store counts it.
    var waiting: [UInt64: (messages: Int, bytes: Int)] = [:]
    var holdShared: Set<UInt64> = []

    mutating func visit(lastSession: UInt64, lastMessage: UInt64) {
        model.progress.lastSession = lastSession
        model.progress.lastMessage = lastMessage
    }

    mutating func visit(_ stored: StoredSession) {
        model.sessions[stored.number] = StoreModel.Session(
            clientIdentifier: [UInt8](stored.clientIdentifier),
            userName: stored.userName.map { [UInt8]($0) }, isAttached: stored.isAttached,
            detachedSinceMs: stored.detachedSinceMs, horizon: stored.horizon, end: stored.end,
            hasEnded: stored.hasEnded)
        if stored.holdsShared { holdShared.insert(stored.number) }
        waiting[stored.number] = (stored.waitingMessages, stored.waitingBytes)
    }

    mutating func visit(
        subscription filter: UnsafeRawBufferPointer, of session: UInt64, qos: UInt8
    ) { model.sessions[session]?.subscriptions[[UInt8](filter)] = qos }

    mutating func visit(packetIdentifier: UInt16, of session: UInt64) {
        model.sessions[session]?.inbound.insert(packetIdentifier)
    }

    mutating func visit(retained message: StoredMessage) {
        model.retained[[UInt8](message.topic)] = StoreModel.Message(message)
    }

    mutating func visit(channel: UnsafeRawBufferPointer, number: UInt64) {
        model.sequences[[UInt8](channel)] = number
    }

    mutating func visit(will message: StoredMessage, of session: UInt64) {
        model.sessions[session]?.will = StoreModel.Message(message)
    }

    mutating func visit(publishKeysFrom bucket: UInt64) {
        precondition(model.publishKeys.isEmpty, "keys came before their first bucket")
    }

    mutating func visit(_ key: PublishKey) { model.publishKeys.append(key) }

    mutating func visit(_ progress: ReceiptProgress) { model.receipts.raise(to: progress) }

    mutating func visit(_ receipt: StoredReceipt) { model.receipts.add(receipt) }

    mutating func visit(_ receiver: StoredReceiver, _ end: ReceiverEnd) {
        model.receipts.add(receiver)
        model.receipts.end(end)
    }

    mutating func visit(lastScheduled: UInt64) {
        precondition(model.scheduled.isEmpty, "scheduled messages came before their last number")
    }

    mutating func visit(_ scheduled: StoredScheduled, dueMs: Int64) {
        model.scheduled[scheduled.number] = scheduled
        model.scheduled[scheduled.number]?.dueMs = dueMs
    }

    mutating func visit(_ position: StoredCollapsible) {
        if model.sessions[position.session] != nil { model.collapsible.insert(position) }
    }

    mutating func visit(_ tag: StoredTag) {
        precondition(model.tags.insert(tag).inserted, "\(tag) came twice")
    }

    mutating func visit(lastPush: UInt64) {
        precondition(model.pushes.isEmpty, "pushes came before their last number")
    }

    mutating func visit(_ push: StoredPush) { model.pushes[push.number] = push }

    mutating func visit(_ device: StoredDevice) {
        precondition(model.devices[device.clientIdentifier] == nil, "\(device) came twice")
        model.devices[device.clientIdentifier] = device
    }
}
