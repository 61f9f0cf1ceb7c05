import MQTTCore
import Structures

/// The parts that follow queue positions from their beginning to their end.
///
/// Every position of a queue ends in one of these calls, or with its session
/// (``removeSession(_:)``). A part that follows positions sets ``Session/follows``, so that all others
/// cost a test of one byte.
extension Shard {
    /// Has a message followed that gets this position in a session's queue.
    @inline(__always)
    mutating func follow(
        _ delivery: RoutedMessage, _ session: UInt32, at position: UInt64
    ) {
        if delivery.isFollowed { followPosition(delivery, session, position) }
    }

    @inline(never)
    private mutating func followPosition(
        _ delivery: RoutedMessage, _ session: UInt32, _ position: UInt64
    ) {
        sessions[session].follows = true
        if delivery.receipt != noIndex { addReceiver(delivery.receipt, session, position) }
        // What a group gives to a member is neither replaced nor replaces.
        if delivery.collapses, delivery.group == noIndex { addCollapsible(session, position) }
    }

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
