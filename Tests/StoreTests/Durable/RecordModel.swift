import HermesTesting

@testable import Store

extension StoreModel {
    /// Without values that may differ between two correct results: the segment, and the offline
    /// time of an attached client. Also without message numbers, which a queue does not return.
    var comparable: StoreModel {
        var model = self
        model.progress.appliedSegment = 0
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

    /// The number of groups that a store holds, as the marker says.
    var groupCount: UInt64 {
        facts[RecordProgram.marker]?.value.reduce(0) { $0 << 8 | UInt64($1) } ?? 0
    }

    /// A session's queue within bounds, by position.
    func items(of session: UInt64, from: UInt64, below: UInt64) -> [QueueItem] {
        guard from < below, let queue = sessions[session]?.queue else { return [] }
        return queue.keys.filter { $0 >= from && $0 < below }.sorted().compactMap { position in
            queue[position].map { QueueItem(position, $0) }
        }
    }
}

extension StoreModel.Session {
    /// When messages of its queue expire, by position.
    var expiries: [UInt64: Expiry] {
        queue.filter { !$0.value.isReleased && $0.value.message.expiresAtMs != 0 }.mapValues {
            Expiry(
                atMs: $0.message.expiresAtMs,
                bytes: $0.message.topic.count + $0.message.payload.count)
        }
    }
}

/// When a queued message expires, and its bytes.
struct Expiry: Equatable {
    var atMs: Int64
    var bytes: Int
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
    /// When messages expire, by session and position.
    var expiries: [UInt64: [UInt64: Expiry]] = [:]
    private var lastFact: StoreModel.FactName?

    mutating func visit(lastSession: UInt64, lastMessage: UInt64) {
        model.progress.lastSession = lastSession
        model.progress.lastMessage = lastMessage
    }

    @discardableResult
    mutating func visit(_ stored: StoredSession) -> Bool {
        model.sessions[stored.number] = StoreModel.Session(
            clientID: [UInt8](stored.clientID),
            userName: stored.userName.map { [UInt8]($0) }, isAttached: stored.isAttached,
            detachedSinceMs: stored.detachedSinceMs, horizon: stored.horizon, end: stored.end,
            hasEnded: stored.hasEnded)
        if stored.holdsShared { holdShared.insert(stored.number) }
        waiting[stored.number] = (stored.waitingMessages, stored.waitingBytes)
        return true
    }

    @discardableResult
    mutating func visit(
        subscription filter: UnsafeRawBufferPointer, of session: UInt64, grant: UInt32
    ) -> Bool {
        model.sessions[session]?.subscriptions[[UInt8](filter)] = grant
        return true
    }

    @discardableResult
    mutating func visit(packetIdentifier: UInt16, of session: UInt64) -> Bool {
        model.sessions[session]?.inbound.insert(packetIdentifier)
        return true
    }

    mutating func visit(position: UInt64, of session: UInt64, bytes: Int, expiresAtMs: Int64) {
        precondition(
            expiries[session]?[position] == nil, "position \(position) of \(session) came twice")
        expiries[session, default: [:]][position] = Expiry(atMs: expiresAtMs, bytes: bytes)
    }

    @discardableResult
    mutating func visit(retained message: StoredMessage) -> Bool {
        model.retained[[UInt8](message.topic)] = StoreModel.Message(message)
        return true
    }

    @discardableResult
    mutating func visit(will message: StoredMessage, of session: UInt64) -> Bool {
        model.sessions[session]?.will = StoreModel.Message(message)
        return true
    }

    mutating func visit(_ fact: StoredFact) -> Bool {
        let name = StoreModel.FactName(fact.table, [UInt8](fact.key))
        if let lastFact { precondition(lastFact < name, "\(name) came after \(lastFact)") }
        lastFact = name
        model.facts[name] = StoreModel.Fact(owner: fact.owner, value: [UInt8](fact.value))
        return true
    }
}
