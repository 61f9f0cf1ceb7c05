@testable import Store

extension WriteBatch {
    /// Appends a record given as a value.
    mutating func append(_ record: StoreRecord) {
        switch record {
        case .session(let number, let identifier, let userName):
            identifier.withUnsafeBytes { identifier in
                if let userName {
                    userName.withUnsafeBytes {
                        session(number, clientID: identifier, userName: $0)
                    }
                } else {
                    session(number, clientID: identifier, userName: nil)
                }
            }
        case .sessionRemoved(let number): sessionRemoved(number)
        case .sessionEnded(let number): sessionEnded(number)
        case .attached(let number): attached(number)
        case .detached(let number, let sinceMs): detached(number, sinceMs: sinceMs)
        case .subscription(let number, let filter, let grant):
            filter.withUnsafeBytes { subscription(number, filter: $0, grant: grant) }
        case .subscriptionRemoved(let number, let filter):
            filter.withUnsafeBytes { subscriptionRemoved(number, filter: $0) }
        case .message(let number, let topic, let payload, let qos, let retain, let expiresAtMs):
            topic.withUnsafeBytes { topic in
                payload.withUnsafeBytes { payload in
                    message(
                        number, topic: topic, payload: payload, qos: qos, retain: retain,
                        expiresAtMs: expiresAtMs)
                }
            }
        case .named(let number, let messageID):
            messageID.withUnsafeBytes { named(number, messageID: $0) }
        case .queued(let session, let position, let message, let qos, let retain, let isInWindow):
            queued(
                session: session, position: position, message: message, qos: qos, retain: retain,
                isInWindow: isInWindow)
        case .shared(let session, let position, let filter):
            filter.withUnsafeBytes { shared(session: session, position: position, filter: $0) }
        case .horizon(let session, let position): horizon(session: session, position: position)
        case .released(let session, let position): released(session: session, position: position)
        case .finished(let session, let position): finished(session: session, position: position)
        case .inbound(let session, let identifier):
            inbound(session: session, packetIdentifier: identifier)
        case .inboundRemoved(let session, let identifier):
            inboundRemoved(session: session, packetIdentifier: identifier)
        case .retained(let number): retained(message: number)
        case .retainedRemoved(let topic): topic.withUnsafeBytes { retainedRemoved(topic: $0) }
        case .will(let session, let number): will(session: session, message: number)
        case .willRemoved(let session): willRemoved(session: session)
        case .fact(let stored):
            fact(
                FactTable(number: stored.table, name: "test"), of: stored.owner,
                isNew: stored.isNew
            ) {
                $0.putRest(stored.key)
            } value: {
                $0.putRest(stored.value)
            }
        case .factRemoved(let table, let owner, let key):
            factRemoved(FactTable(number: table, name: "test"), of: owner) { $0.putRest(key) }
        case .factsRemoved(let table, let from, let below):
            factsRemoved(FactTable(number: table, name: "test")) {
                $0.putRest(from)
            } below: {
                $0.putRest(below)
            }
        }
    }
}
