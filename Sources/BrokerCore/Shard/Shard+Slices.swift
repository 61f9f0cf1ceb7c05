import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Parts of queues arrive from the store, for clients (``QueueLoad``), for ended sessions whose
/// messages go to other members of their groups, and for features.
extension Shard {
    /// Takes the results of reads, for clients, for ended sessions and for features.
    package mutating func takeSlices() {
        for slice in commits.takeSlices() {
            switch ReadTag(encoded: slice.request.tag) {
            case .load: takeLoad(slice)
            case .ended: takeEnded(slice)
            case .unsure: takeUnsure(slice)
            case .feature(let tag): followers.take(&self, slice, tag: tag)
            }
        }
    }

    private mutating func takeLoad(_ slice: QueueSlice) {
        let number = slice.request.session
        if let handle = sessions.loads[number].reader, connections.isLive(handle),
            let sessionPresent = connections[handle].machine.loaded()
        {
            // CONNACK is the first packet [MQTT-3.2.0-1].
            finishOpening(handle, sessionPresent: sessionPresent)
        }
        var load = sessions.loads[number]
        let event = load.receive(
            slice, isLive: { connections.isLive($0) },
            isWaiting: { connections[$0].machine.holdsInput })
        sessions.loads[number] = load
        switch event {
        case .hold, .discard: return
        case .place(let handle, let dropped): place(slice, for: handle, dropped: dropped)
        case .restart(let handle):
            let session = connections[handle].session
            self.load(session, for: handle)
            // If an operator has emptied the queue, CONNACK has nothing to wait for any more.
            if !sessions.loads[number].isLoading,
                let sessionPresent = connections[handle].machine.loaded()
            {
                finishOpening(handle, sessionPresent: sessionPresent)
            }
        }
    }

    /// Reads further queues of ended sessions, while the store accepts messages.
    package mutating func readEnded() {
        while !commits.holdsMessages, let read = endedSessions.nextRead() { commits.read(read) }
    }

    /// Hands over a part of an ended session's queue: one group of records gives the messages to
    /// other members and removes them here. The last part removes the session.
    private mutating func takeEnded(_ slice: QueueSlice) {
        guard var ended = endedSessions.take(slice.request.session) else { return }
        guard !commits.holdsMessages else {
            endedSessions.add(ended)
            return
        }
        let (number, horizon) = (ended.number, ended.horizon)
        var lost: UInt64 = 0
        slice.forEach { item in
            guard !item.isReleased, TopicText.isName(item.topic),
                !item.isExpired(atMs: context.wallClockMs)
            else { return }
            // A sent QoS 2 message is not handed over, since its receiver may have it.
            guard !item.shared.isEmpty,
                item.position >= horizon || item.qos == QoS.atLeastOnce.rawValue
            else {
                if item.qos != QoS.atMostOnce.rawValue { lost += 1 }
                return
            }
            let position = FollowedPosition(number: number, position: item.position)
            pass(item, follower: followers.follower(of: position), .sessionEnded)
            commits.records.finished(session: number, position: item.position)
        }
        if let failure = slice.failure {
            // The rest stays in the store; the next start tries again.
            context.notices.append(
                .unreadableEnded(clientID: ended.clientID, "\(failure)"))
            return
        }
        guard slice.next < ended.below else {
            commits.records.sessionRemoved(number)
            followers.queueEnded(number)
            tellEnd(nil, of: ended.clientID, lost: ended.lost + lost)
            return
        }
        ended.lost += lost
        ended.from = slice.next
        endedSessions.add(ended)
    }
}
