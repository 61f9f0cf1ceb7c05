import MQTTCodec
import MQTTCore
import Store

/// A session that is over, while what its shared subscriptions had given it goes to other members.
///
/// The store has marked it as ended, so that a start goes on with it; no client can find it again.
struct EndedSession {
    var number: UInt64
    /// Its client's, for the log.
    var clientIdentifier: [UInt8]
    /// What is not read yet.
    var from: UInt64 = 0
    /// Positions below may have been sent to its client.
    var horizon: UInt64
    /// Positions from this one on are none of its.
    var below: UInt64
}

/// Sessions that end with shared messages in the store, which other members get.
extension Shard {
    /// Queues of ended sessions that are read at a time, and messages and bytes that one read brings:
    /// many sessions may end at once, and nobody else is to notice.
    private static var endedAtOnce: Int { 4 }
    private static var endedMessages: Int { 64 }
    private static var endedBytes: Int { 256 * 1_024 }

    /// Whether the session's queue in the store has to be looked through before it goes.
    func leavesShared(_ session: UInt32) -> Bool {
        isDurable && sessions[session].holdsShared && !sessions[session].outbound.isEmpty
    }

    /// Ends a session whose queue holds messages of shared subscriptions.
    mutating func endSession(_ session: UInt32) {
        writes.sessionEnded(sessions[session].number)
        endedSessions.append(
            EndedSession(
                number: sessions[session].number,
                clientIdentifier: sessions[session].clientIdentifier.array,
                horizon: sessions[session].outbound.firstStored,
                below: sessions[session].outbound.end))
    }

    /// Whether the queue of an ended session can be read now.
    var canReadEnded: Bool {
        !holdsForStore && !endedSessions.isEmpty && endedUnderWay.count < Self.endedAtOnce
    }

    /// Reads on in the queues of ended sessions, while new messages can be stored.
    mutating func readEnded() {
        while canReadEnded, let next = endedSessions.popLast() {
            endedUnderWay[next.number] = next
            reads.append(
                QueueRead(
                    session: next.number, from: next.from, below: next.below,
                    maxMessages: Self.endedMessages, maxBytes: Self.endedBytes,
                    tag: ReadTag.ended(next.number).encoded, ticket: 0))
        }
    }

    /// A part of an ended session's queue: in one group, other members get what is theirs and the
    /// session has it no more; with the last part the session goes.
    mutating func takeEnded(_ slice: QueueSlice) {
        guard var ended = endedUnderWay.removeValue(forKey: slice.request.session) else { return }
        guard !holdsForStore else {
            endedSessions.append(ended)
            return
        }
        let number = ended.number
        let horizon = ended.horizon
        slice.forEach { item in
            guard !item.shared.isEmpty, !item.isReleased else { return }
            // What was sent at QoS 2 stays with its receiver, who may have it already.
            guard item.position >= horizon || item.qos == QoS.atLeastOnce.rawValue else { return }
            writes.finished(session: number, position: item.position)
            pass(item)
        }
        if let failure = slice.failure {
            // What could not be read stays in the store; the next start tries again.
            notices.append(
                .unreadableEnded(clientIdentifier: ended.clientIdentifier, "\(failure)"))
            return
        }
        guard slice.next < ended.below else {
            writes.sessionRemoved(number)
            return
        }
        ended.from = slice.next
        endedSessions.append(ended)
    }

    /// Gives a message of the store to a member of its group, if there is any.
    mutating func pass(_ item: QueueSlice.Item) {
        guard let group = shared.group(item.shared) else {
            counters.dropped.add(.away)
            return
        }
        let message = message(item)
        pass(message, to: group, isStored: true)
        message.release(in: pool)
    }

    /// The message of an item that is not released.
    func message(_ item: QueueSlice.Item) -> Message {
        Message(
            topic: item.topic, payload: item.payload,
            qos: QoS(rawValue: item.publishedQoS) ?? QoS(rawValue: item.qos) ?? .atLeastOnce,
            retain: item.publishedRetain, expiresAtMs: item.expiresAtMs, pool: pool)
    }
}
