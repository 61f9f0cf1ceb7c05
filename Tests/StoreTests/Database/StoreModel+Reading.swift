import HermesTesting

@testable import Store

extension StoreModel.Message {
    init(_ stored: StoredMessage) {
        self.init(
            number: stored.number, topic: [UInt8](stored.topic), payload: [UInt8](stored.payload),
            qos: stored.qos, retain: stored.retain, expiresAtMs: stored.expiresAtMs,
            messageID: [UInt8](stored.messageID))
    }
}

extension StoreModel {
    /// Applies a segment in the order that ``SegmentChanges`` defines.
    mutating func apply(_ segment: SegmentBuilder) {
        let changes = segment.changes
        var messages: [UInt64: Message] = [:]
        for message in changes.messages {
            func text(_ location: SegmentChanges.Location) -> [UInt8] {
                Array(segment.bytes[Int(location.offset)...].prefix(Int(location.count)))
            }
            messages[message.number] = Message(
                number: message.number, topic: text(message.topic), payload: text(message.payload),
                qos: message.qos, retain: message.retain, expiresAtMs: message.expiresAtMs,
                messageID: message.messageID.map(text) ?? [])
        }
        for session in changes.removedSessions { sessions[session] = nil }
        for session in changes.newSessions {
            sessions[session.number] = Session(
                clientID: session.clientID, userName: session.userName)
        }
        for state in changes.sessionStates {
            if let value = state.isAttached { sessions[state.number]?.isAttached = value }
            if let value = state.detachedSinceMs { sessions[state.number]?.detachedSinceMs = value }
            if let value = state.horizon { sessions[state.number]?.horizon = value }
            if let value = state.end { sessions[state.number]?.end = value }
        }
        for session in changes.endedSessions { sessions[session]?.endSession() }
        for change in changes.subscriptions {
            sessions[change.session]?.subscriptions[change.filter] = change.grant
        }
        for entry in changes.queued {
            guard let message = messages[entry.message] ?? released(entry) else { continue }
            var row = Row(
                message: message, qos: entry.qos, retain: entry.retain, isReleased: false,
                shared: entry.isShared ? changes.sharedFilters[Int(entry.shared)] : [])
            if entry.isReleased { row.release() }
            sessions[entry.session]?.queue[entry.position] = row
        }
        for range in changes.released {
            for position in range.first...range.last {
                guard sessions[range.session]?.queue[position]?.qos == 2 else { continue }
                sessions[range.session]?.queue[position]?.release()
            }
        }
        for range in changes.finished {
            for position in range.first...range.last {
                sessions[range.session]?.queue[position] = nil
            }
        }
        for change in changes.inbound {
            if change.isPresent {
                sessions[change.session]?.inbound.insert(change.packetIdentifier)
            } else {
                sessions[change.session]?.inbound.remove(change.packetIdentifier)
            }
        }
        for change in changes.retained {
            retained[change.topic] = change.message.flatMap { messages[$0] }
        }
        for change in changes.wills {
            sessions[change.session]?.will = change.message.flatMap { messages[$0] }
        }
        for removal in changes.facts.removals {
            removeFacts(removal.table, from: removal.from, below: removal.below)
        }
        changes.facts.bytes.withUnsafeBytes { bytes in
            for entry in changes.facts.entries where entry.state != .forgotten {
                let name = FactName(entry.table, [UInt8](entry.key(in: bytes).bytes))
                facts[name] =
                    entry.state == .removed
                    ? nil : Fact(owner: entry.owner, value: [UInt8](entry.value(in: bytes)))
            }
        }
        progress = Progress(
            appliedSegment: changes.segment,
            lastSession: max(progress.lastSession, changes.lastSession),
            lastMessage: max(progress.lastMessage, changes.lastMessage))
    }

    /// Removes the content, which a released position does not need.
    private func released(_ entry: SegmentChanges.QueuedPosition) -> Message? {
        guard entry.isReleased else { return nil }
        return Message(
            number: entry.message, topic: [], payload: [], qos: 0, retain: false, expiresAtMs: 0)
    }

    /// Reads everything through the database's own methods; `nil` if its sums are wrong.
    init?(reading database: Database, folder: DatabaseFolder, windowMessages: Int = 7) throws {
        self.init()
        progress = Progress(
            appliedSegment: database.progress.appliedSegment,
            lastSession: database.progress.lastSession,
            lastMessage: database.progress.lastMessage)
        var counted: [UInt64: (messages: Int, bytes: Int)] = [:]
        var holdShared: Set<UInt64> = []
        var sessions: [UInt64: Session] = [:]
        try database.forEachSession { stored in
            sessions[stored.number] = Session(
                clientID: [UInt8](stored.clientID),
                userName: stored.userName.map { [UInt8]($0) }, isAttached: stored.isAttached,
                detachedSinceMs: stored.detachedSinceMs, horizon: stored.horizon, end: stored.end,
                hasEnded: stored.hasEnded)
            if stored.holdsShared { holdShared.insert(stored.number) }
            counted[stored.number] = (stored.waitingMessages, stored.waitingBytes)
        }
        try database.forEachSubscription { session, filter, qos in
            sessions[session]?.subscriptions[[UInt8](filter)] = qos
        }
        try database.forEachInbound { session, identifier in
            sessions[session]?.inbound.insert(identifier)
        }
        try database.forEachWill { session, message in
            sessions[session]?.will = Message(message)
        }
        self.sessions = sessions
        var retained: [[UInt8]: Message] = [:]
        try database.forEachRetained { retained[[UInt8]($0.topic)] = Message($0) }
        self.retained = retained
        var facts: [FactName: Fact] = [:]
        try database.forEachFact {
            facts[FactName($0.table, [UInt8]($0.key))] = Fact(
                owner: $0.owner, value: [UInt8]($0.value))
        }
        self.facts = facts

        var expiries: [UInt64: [UInt64: Expiry]] = [:]
        try database.forEachExpiry {
            expiries[$0, default: [:]][$1] = Expiry(atMs: $3, bytes: $2)
        }
        let reader = try QueueReader(directory: folder.path)
        for number in sessions.keys {
            self.sessions[number]?.queue = try Self.queue(number, reader, windowMessages)
            guard let session = self.sessions[number], let counted = counted[number],
                counted.messages == session.queue.count, counted.bytes == session.waitingBytes,
                expiries[number] ?? [:] == session.expiries,
                holdShared.contains(number) || !session.holdsShared,
                !holdShared.contains(number) || !session.queue.isEmpty
            else { return nil }
        }
    }

    /// A session's whole queue, read in windows.
    static func queue(
        _ session: UInt64, _ reader: QueueReader, _ windowMessages: Int
    ) throws -> [UInt64: Row] {
        var rows: [UInt64: Row] = [:]
        var from: UInt64 = 0
        while true {
            var batch = WriteBatch(isRecording: true)
            let window = try reader.read(
                session: session, from: from, below: .max, maxMessages: windowMessages,
                maxBytes: 1_000, into: &batch)
            var messages: [UInt64: Message] = [:]
            for record in batch.groups().flatMap(\.records) {
                switch record {
                case .message(
                    let number, let topic, let payload, let qos, let retain, let expiresAtMs):
                    messages[number] = Message(
                        number: number, topic: topic, payload: payload, qos: qos, retain: retain,
                        expiresAtMs: expiresAtMs)
                case .named(let number, let messageID): messages[number]?.messageID = messageID
                case .queued(session, let position, let message, let qos, let retain, false):
                    guard let message = messages[message] else { continue }
                    rows[position] = Row(
                        message: message, qos: qos, retain: retain, isReleased: false)
                case .shared(session, let position, let filter):
                    rows[position]?.shared = filter
                case .released(session, let position):
                    rows[position]?.isReleased = true
                default:
                    preconditionFailure("a window holds \(record)")
                }
            }
            guard window.hasMore else { return rows }
            precondition(window.next > from || from == 0, "a window ends where it began")
            from = window.next
        }
    }
}
