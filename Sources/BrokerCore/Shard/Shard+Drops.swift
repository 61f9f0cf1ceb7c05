import BrokerAPI
import MQTTCore
import Structures

/// Lost messages: counted by reason and session, and told in the log.
extension Shard {
    /// Counts a lost message, and has the log tell of it, by its name if memory has the message.
    package mutating func drop(_ session: UInt32, _ reason: DropReason, _ message: Message? = nil) {
        context.counters.dropped.add(reason)
        if reason == .slowReader { context.counters.limits.add(.outputBytes) }
        sessions.countDrop(session, reason)
        // QoS 0 is expected to be lost while offline, and a replaced message to be replaced; access
        // denials have their own report.
        guard reason != .offline, reason != .notAllowed, reason != .replaced else { return }
        let notice = dropReports.note(reason, session, sessions, message, at: context.now)
        if let notice { context.notices.append(notice) }
    }

    /// Tells the log of messages lost in the last second.
    package mutating func reportDrops() {
        for notice in dropReports.takeDue(at: context.now) { context.notices.append(notice) }
    }

    /// True when a client published to a topic reserved for the broker. The message is dropped,
    /// counted, and reported.
    @inline(__always)
    package mutating func dropsReserved(_ topic: UnsafeRawBufferPointer, from session: UInt32)
        -> Bool
    {
        // Few topic names begin with `$`.
        guard topic.first == UInt8(ascii: "$"), SystemTopic.isClosedToClients(topic) else {
            return false
        }
        drop(session, .reservedTopic)
        return true
    }
}
