import MQTTCore
import Structures

/// The end of queue positions, and what follows them.
///
/// Every position of a queue ends in one of these calls, or with its session
/// (``removeSession(_:)``). A part that follows positions sets ``Session/follows``, so that all others
/// cost a test of one byte.
extension Shard {
    /// Records that a queue position is done; nothing waits for this commit.
    @inline(__always)
    mutating func finished(_ session: UInt32, _ position: UInt64, _ end: QueueEnd) {
        positionEnded(session, position, end)
        guard sessions[session].isPersistent else { return }
        commits.records.finished(session: sessions[session].number, position: position)
    }

    /// Tells the followers of a queue position how it has ended. A position of QoS 2 ends with
    /// PUBREC and once more with PUBCOMP.
    @inline(__always)
    mutating func positionEnded(_ session: UInt32, _ position: UInt64, _ end: QueueEnd) {
        if sessions[session].follows { followedEnded(session, position, end) }
    }

    @inline(never)
    private mutating func followedEnded(_ session: UInt32, _ position: UInt64, _ end: QueueEnd) {
        endReceiver(session, position, end)
        endCollapsible(session, position)
        let number = sessions[session].number
        sessions[session].follows = !receipts.freesSession(number) || collapse.holds(number)
    }

    /// Moves waiting messages over the holes that dropped ones left in memory.
    mutating func closeHoles(_ session: UInt32) {
        let number = sessions[session].number
        let follows = sessions[session].follows
        sessions[session].outbound.closeHoles(pool: context.pool) { old, new in
            guard follows else { return }
            receipts.move(number, from: old, to: new)
            collapse.move(number, from: old, to: new)
        }
    }
}
