@testable import Store

extension WriteBatch {
    /// Appends a record given as a value.
    mutating func append(_ record: StoreRecord) {
        switch record {
        case .session(let number, let identifier, let userName):
            identifier.withUnsafeBytes { identifier in
                if let userName {
                    userName.withUnsafeBytes {
                        session(number, clientIdentifier: identifier, userName: $0)
                    }
                } else {
                    session(number, clientIdentifier: identifier, userName: nil)
                }
            }
        case .sessionRemoved(let number): sessionRemoved(number)
        case .sessionEnded(let number): sessionEnded(number)
        case .attached(let number): attached(number)
        case .detached(let number, let sinceMs): detached(number, sinceMs: sinceMs)
        case .subscription(let number, let filter, let qos):
            filter.withUnsafeBytes { subscription(number, filter: $0, qos: qos) }
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
        case .sequence(let channel, let number):
            channel.withUnsafeBytes { sequence(channel: $0, number: number) }
        case .publishKey(let key): publishKey(key)
        case .publishKeysDropped(let bucket): publishKeysDropped(below: bucket)
        case .receipt(let stored):
            stored.messageID.withUnsafeBytes { messageID in
                stored.topic.withUnsafeBytes { topic in
                    receipt(
                        stored.number, atMs: stored.atMs, messageID: messageID, topic: topic)
                }
            }
        case .receiptReceiver(let stored):
            stored.clientIdentifier.withUnsafeBytes {
                receiptReceiver(
                    receipt: stored.receipt, place: stored.place, session: stored.session,
                    position: stored.position, clientIdentifier: $0)
            }
        case .receiptEnded(let end): receiptEnded(end)
        case .receiptProgress(let progress): receiptProgress(progress)
        case .scheduled(let message): scheduled(message)
        case .scheduledMoved(let number, let dueMs): scheduledMoved(number, dueMs: dueMs)
        case .scheduledEnded(let number): scheduledEnded(number)
        case .collapsible(let stored): collapsible(stored)
        case .collapsibleEnded(let session, let position):
            collapsibleEnded(session: session, position: position)
        case .tag(let tag, let isSet):
            tag.tag.withUnsafeBytes { text in
                tag.clientIdentifier.withUnsafeBytes {
                    self.tag(text, of: $0, isSet: isSet)
                }
            }
        case .push(let push): self.push(push)
        case .pushProgress(let progress): pushProgress(progress)
        case .pushRemoved(let number): pushRemoved(number)
        case .device(let device): self.device(device)
        case .deviceRemoved(let client): client.withUnsafeBytes { deviceRemoved(of: $0) }
        case .woken(let client, let woken): client.withUnsafeBytes { self.woken($0, woken) }
        }
    }
}
