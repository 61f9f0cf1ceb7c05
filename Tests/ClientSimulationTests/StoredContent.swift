@testable import Store

/// What the broker has stored, as dictionaries: records change it, and a shard that starts reads it.
///
/// Only what the simulation uses is kept: sessions with their queues, sequences, keys of publishes
/// and replaceable positions.
struct StoredContent {
    struct Row {
        var message: StoreRecord
        var messageID: [UInt8]
        var queued: StoreRecord
        var isReleased = false

        var size: Int {
            guard case .message(_, let topic, let payload, _, _, _) = message else { return 0 }
            return isReleased ? 0 : topic.count + payload.count
        }
    }

    struct Session {
        var clientIdentifier: [UInt8]
        var userName: [UInt8]?
        var isAttached = false
        var detachedSinceMs: Int64 = 0
        var horizon: UInt64 = 0
        var end: UInt64 = 0
        var subscriptions: [[UInt8]: UInt8] = [:]
        var inbound: Set<UInt16> = []
        var queue: [UInt64: Row] = [:]
    }

    private(set) var sessions: [UInt64: Session] = [:]
    private(set) var lastSession: UInt64 = 0
    private var lastMessage: UInt64 = 0
    private var sequences: [[UInt8]: UInt64] = [:]
    private var publishKeys: [PublishKey] = []
    private var collapsible: Set<StoredCollapsible> = []

    /// True when nothing waits for any client.
    var isDrained: Bool { sessions.values.allSatisfy { $0.queue.isEmpty && $0.inbound.isEmpty } }

    /// The number of the client's session, if it has all of `filters`.
    func session(of client: String, with filters: [String]) -> UInt64? {
        sessions.first { _, session in
            session.clientIdentifier.elementsEqual(client.utf8)
                && filters.allSatisfy { session.subscriptions[Array($0.utf8)] != nil }
        }?.key
    }

    /// Applies the records of one group.
    mutating func apply(_ records: [StoreRecord]) {
        var messages: [UInt64: (record: StoreRecord, messageID: [UInt8])] = [:]
        for record in records {
            switch record {
            case .message(let number, _, _, _, _, _):
                messages[number] = (record, [])
                lastMessage = max(lastMessage, number)
            case .named(let number, let messageID): messages[number]?.messageID = messageID
            case .queued(let session, let position, let number, _, _, let isInWindow):
                guard let message = messages[number] else {
                    preconditionFailure("message \(number) is not in the group that refers to it")
                }
                sessions[session]?.queue[position] = Row(
                    message: message.record, messageID: message.messageID, queued: record)
                sessions[session]?.end = position + 1
                if isInWindow { sessions[session]?.horizon = position + 1 }
            default: apply(record)
            }
        }
    }

    private mutating func apply(_ record: StoreRecord) {
        switch record {
        case .session(let number, let identifier, let userName):
            sessions[number] = Session(clientIdentifier: identifier, userName: userName)
            lastSession = max(lastSession, number)
        case .sessionRemoved(let number):
            sessions[number] = nil
            collapsible = collapsible.filter { $0.session != number }
        case .attached(let session): sessions[session]?.isAttached = true
        case .detached(let session, let sinceMs):
            sessions[session]?.isAttached = false
            sessions[session]?.detachedSinceMs = sinceMs
        case .subscription(let session, let filter, let qos):
            sessions[session]?.subscriptions[filter] = qos
        case .subscriptionRemoved(let session, let filter):
            sessions[session]?.subscriptions[filter] = nil
        case .horizon(let session, let position): sessions[session]?.horizon = position
        case .released(let session, let position):
            sessions[session]?.queue[position]?.isReleased = true
        case .finished(let session, let position): sessions[session]?.queue[position] = nil
        case .inbound(let session, let identifier): sessions[session]?.inbound.insert(identifier)
        case .inboundRemoved(let session, let identifier):
            sessions[session]?.inbound.remove(identifier)
        case .sequence(let channel, let number): sequences[channel] = number
        case .publishKey(let key): publishKeys.append(key)
        case .publishKeysDropped(let bucket): publishKeys.removeAll { $0.bucket < bucket }
        case .collapsible(let stored):
            endCollapsible(stored.session, stored.position)
            collapsible.insert(stored)
        case .collapsibleEnded(let session, let position): endCollapsible(session, position)
        default: preconditionFailure("the simulation has no use for \(record)")
        }
    }

    private mutating func endCollapsible(_ session: UInt64, _ position: UInt64) {
        collapsible = collapsible.filter { $0.session != session || $0.position != position }
    }

    // MARK: A start

    func restore(to visitor: inout (some StoreVisitor & ~Copyable)) {
        visitor.visit(lastSession: lastSession, lastMessage: lastMessage)
        let sorted = sessions.sorted { $0.key < $1.key }
        for (number, session) in sorted { Self.restore(number, session, to: &visitor) }
        for (number, session) in sorted {
            for (filter, qos) in session.subscriptions.sorted(by: {
                $0.key.lexicographicallyPrecedes($1.key)
            }) {
                filter.withUnsafeBytes { visitor.visit(subscription: $0, of: number, qos: qos) }
            }
        }
        for (number, session) in sorted {
            for identifier in session.inbound.sorted() {
                visitor.visit(packetIdentifier: identifier, of: number)
            }
        }
        for (channel, number) in sequences {
            channel.withUnsafeBytes { visitor.visit(channel: $0, number: number) }
        }
        visitor.visit(publishKeysFrom: 0)
        for key in publishKeys { visitor.visit(key) }
        for position in collapsible.sorted(by: {
            ($0.session, $0.position) < ($1.session, $1.position)
        }) {
            visitor.visit(position)
        }
    }

    private static func restore(
        _ number: UInt64, _ session: Session, to visitor: inout (some StoreVisitor & ~Copyable)
    ) {
        session.clientIdentifier.withUnsafeBytes { identifier in
            (session.userName ?? []).withUnsafeBytes { userName in
                visitor.visit(
                    StoredSession(
                        number: number, clientIdentifier: identifier,
                        userName: session.userName == nil ? nil : userName,
                        isAttached: session.isAttached, detachedSinceMs: session.detachedSinceMs,
                        horizon: session.horizon, end: session.end,
                        waitingMessages: session.queue.count,
                        waitingBytes: session.queue.values.reduce(0) { $0 + $1.size },
                        holdsShared: false, hasEnded: false))
            }
        }
    }
}
