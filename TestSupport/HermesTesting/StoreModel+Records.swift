import Store

/// The meaning of a group of records, applied to dictionaries at once.
extension StoreModel {
    package mutating func apply(_ records: [StoreRecord]) {
        var messages: [UInt64: Message] = [:]
        for record in records { apply(record, &messages) }
    }

    private mutating func apply(_ record: StoreRecord, _ messages: inout [UInt64: Message]) {
        switch record {
        case .session(let number, let identifier, let userName):
            sessions[number] = Session(clientID: identifier, userName: userName)
            progress.lastSession = max(progress.lastSession, number)
        case .sessionRemoved(let number):
            sessions[number] = nil
        case .sessionEnded(let number): sessions[number]?.endSession()
        case .attached(let session): sessions[session]?.isAttached = true
        case .detached(let session, let sinceMs):
            sessions[session]?.isAttached = false
            sessions[session]?.detachedSinceMs = sinceMs
        case .subscription(let session, let filter, let grant):
            sessions[session]?.subscriptions[filter] = grant
        case .subscriptionRemoved(let session, let filter):
            sessions[session]?.subscriptions[filter] = nil
        case .message(let number, let topic, let payload, let qos, let retain, let expiresAtMs):
            messages[number] = Message(
                number: number, topic: topic, payload: payload, qos: qos, retain: retain,
                expiresAtMs: expiresAtMs)
            progress.lastMessage = max(progress.lastMessage, number)
        case .named(let number, let messageID): messages[number]?.messageID = messageID
        case .queued(let session, let position, let number, let qos, let retain, let isInWindow):
            guard let message = messages[number] else { return }
            sessions[session]?.queue[position] = Row(
                message: message, qos: qos, retain: retain, isReleased: false)
            sessions[session]?.end = position + 1
            if isInWindow { sessions[session]?.horizon = position + 1 }
        case .shared(let session, let position, let filter):
            sessions[session]?.queue[position]?.shared = filter
        case .horizon(let session, let position): sessions[session]?.horizon = position
        case .released(let session, let position):
            if sessions[session]?.queue[position]?.qos == 2 {
                sessions[session]?.queue[position]?.release()
            }
        case .finished(let session, let position): sessions[session]?.queue[position] = nil
        case .inbound(let session, let identifier): sessions[session]?.inbound.insert(identifier)
        case .inboundRemoved(let session, let identifier):
            sessions[session]?.inbound.remove(identifier)
        case .retained(let number):
            guard let message = messages[number] else { return }
            retained[message.topic] = message
        case .retainedRemoved(let topic): retained[topic] = nil
        case .will(let session, let number): sessions[session]?.will = messages[number]
        case .willRemoved(let session): sessions[session]?.will = nil
        case .fact(let fact):
            facts[FactName(fact.table, fact.key)] = Fact(owner: fact.owner, value: fact.value)
        case .factRemoved(let table, _, let key): facts[FactName(table, key)] = nil
        case .factsRemoved(let table, let from, let below):
            removeFacts(table, from: from, below: below)
        }
    }
}
