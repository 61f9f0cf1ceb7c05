import MQTTCodec
import MQTTCore
import Structures

/// Queue positions from their beginning to their end, as ``Followers`` are told of them.
///
/// Every position of a queue ends in one of these calls, or with its session
/// (``removeSession(_:)``). A feature that follows positions sets ``Session/follows``, so that all
/// others cost a test of one byte.
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
        followers.positionBegan(&self, delivery, session, position)
    }

    /// Tells the followers of a message that it ends here without a queue position.
    @inline(__always)
    mutating func endAtOnce(_ delivery: RoutedMessage, _ session: UInt32, _ end: QueueEnd) {
        if delivery.follower != noIndex {
            followers.endedAtOnce(&self, delivery, session, end)
        }
    }

    /// Tells the followers of a watched session of a queued message.
    @inline(__always)
    mutating func noteQueued(
        _ delivery: inout RoutedMessage, _ session: UInt32, at position: UInt64
    ) {
        if sessions[session].isWatched {
            followers.queued(&self, &delivery, session, position)
        }
    }

    /// Records that a queue position is done; nothing waits for this commit.
    @inline(__always)
    package mutating func finished(_ session: UInt32, _ position: UInt64, _ end: QueueEnd) {
        positionEnded(session, position, end)
        guard sessions[session].isPersistent else { return }
        commits.records.finished(session: sessions[session].number, position: position)
    }

    /// Counts and records that a receiver has acknowledged a message to the end.
    mutating func acknowledged(
        _ session: UInt32, _ position: UInt64, _ qos: QoS, arrivedMs: UInt32
    ) {
        context.counters.delivered(
            qos, arrivedMs: arrivedMs,
            acknowledgedMs: commits.times.acknowledgementStamp(ofArrival: arrivedMs),
            at: context.now)
        sessions[session].publishesAcknowledged += 1
        finished(session, position, .acknowledged)
    }

    /// Tells the followers of a queue position how it has ended. A position of QoS 2 ends with
    /// PUBREC and once more with PUBCOMP.
    @inline(__always)
    mutating func positionEnded(_ session: UInt32, _ position: UInt64, _ end: QueueEnd) {
        if sessions[session].follows {
            followers.positionEnded(&self, session, position, end)
        }
    }

    /// The follower of a queue position whose message another member of its group is to get;
    /// ``noIndex`` without one.
    func follower(of session: UInt32, _ position: UInt64) -> UInt32 {
        guard sessions[session].follows else { return noIndex }
        return followers.follower(
            of: FollowedPosition(number: sessions[session].number, position: position))
    }

    // MARK: Holes

    /// Moves waiting messages over the holes that dropped ones left in memory.
    mutating func closeHoles(_ session: UInt32) {
        let number = sessions[session].number
        let follows = sessions[session].follows
        let followers = followers
        var hasMoved = false
        sessions[session].outbound.closeHoles(pool: context.pool) { old, new in
            hasMoved = true
            if follows { followers.positionMoved(number, from: old, to: new) }
        }
        if hasMoved, !expiries.isEmpty { expiries.noteMoved(number) }
    }

    /// Takes a waiting message out of a queue, in memory or in the store, where it leaves a hole; false
    /// when none waits at the position, or it may be on its way. The caller ends the position. Without
    /// `bytes` a message in the store counts with the average of its queue.
    package mutating func removeWaiting(
        _ session: UInt32, _ position: UInt64, bytes: Int? = nil
    ) -> Bool {
        let number = sessions[session].number
        let before = sessions[session].outbound
        if position >= before.firstStored {
            // What is being loaded counts as sent.
            guard position < before.end, position >= sessions.loads.below(of: number),
                sessions.holes.add(position, of: number)
            else { return false }
            sessions[session].outbound.dropStored(bytes: bytes)
        } else {
            guard sessions[session].outbound.dropWaiting(at: position, pool: context.pool) else {
                return false
            }
        }
        sessions.totals.replace(before, by: sessions[session].outbound)
        return true
    }

    /// Moves the stored part of a queue over holes at its front.
    @inline(__always)
    package mutating func passHoles(_ session: UInt32) {
        if !sessions.holes.isEmpty { passKnownHoles(session) }
    }

    @inline(never)
    package mutating func passKnownHoles(_ session: UInt32) {
        let number = sessions[session].number
        let before = sessions[session].outbound
        guard before.stored > 0, !sessions.loads.isLoading(number) else { return }
        let end = min(sessions.holes.end(from: before.firstStored, of: number), before.end)
        guard end > before.firstStored else { return }
        sessions[session].outbound.passHoles(below: end)
        sessions.totals.replace(before, by: sessions[session].outbound)
        forgetHoles(session, from: before.firstStored)
        commits.records.horizon(
            session: number, position: sessions[session].outbound.firstStored)
    }

    /// Forgets holes that the stored part of a queue has passed, which began at a position.
    @inline(__always)
    package mutating func forgetHoles(_ session: UInt32, from first: UInt64) {
        guard !sessions.holes.isEmpty else { return }
        let end = sessions[session].outbound.firstStored
        sessions.holes.forget(sessions[session].number, from: first, below: end)
    }

    /// Remembers the holes among waiting messages of a queue that is about to leave memory.
    mutating func rememberHoles(_ session: UInt32) {
        let number = sessions[session].number
        let queue = sessions[session].outbound
        queue.forEachHole { _ = sessions.holes.add($0, of: number) }
    }
}
