import BrokerAPI
import BrokerCore
import MQTTCore
import Store
import Structures

/// Messages of the admin plane that replace queued ones of the same collapse key.
///
/// What waits for a receiver and was never sent leaves its queue, and the new message is queued
/// behind all others; both in one group of records. A receiver that gets the new message with QoS 0
/// keeps what it has. The new one names the sequences of those it
/// replaced for any receiver, so that each hole in a channel is explained to whoever has it.
extension Shard {
    /// Positions of ended sessions that are removed in a turn.
    private static var orphansPerTurn: Int { 1_024 }

    /// Removes what a message replaces from the queues of its receivers; returns the sequences that
    /// it supersedes, ascending, at most ``Publication/mostSuperseded``: what would bring more is not
    /// replaced. `nil` when it replaces nothing.
    ///
    /// Nothing leaves a queue for a message that may not take its place there: one that its receiver
    /// gets with QoS 0, which no queue keeps for an offline client, or one that has expired.
    mutating func replaceQueued(by publication: Publication) -> [UInt64]? {
        guard let key = publication.collapseKey, features.collapse.count > 0,
            publication.qos != .atMostOnce,
            publication.expiresAtMs.map({ $0 > context.wallClockMs }) ?? true
        else { return nil }
        var superseded: Set<UInt64>?
        let matches = publication.topic.withUnsafeBytes { receivers(of: $0, isCounted: false) }
        context.budget.spend(matches.count * WorkBudget.matchStep)
        features.collapse.replacing = publication.messageID
        let bytes =
            publication.topic.count + publication.storedPayload.count
            + Publication.mostStampBytes
        for match in matches {
            let number = sessions[match.session].number
            guard match.qos != .atMostOnce, sessions[match.session].isUsed,
                sessions[match.session].follows,
                let place = features.collapse.find(session: number, key: key)
            else { continue }
            let all = (superseded ?? []).union(features.collapse.sequences(of: place))
            guard all.count <= Publication.mostSuperseded,
                hasRoom(in: match.session, bytes: bytes),
                replace(match.session, features.collapse.entries[place].position)
            else { continue }
            superseded = all
        }
        return superseded?.sorted()
    }

    /// True when the new message will have room, so that nothing leaves for one that does not come.
    private func hasRoom(in session: UInt32, bytes: Int) -> Bool {
        guard context.limits.queuePolicy != .dropOldest else {
            return bytes <= context.limits.queueBytes
        }
        let queue = sessions[session].outbound
        let isConnected = sessions[session].connection != nil
        return queue.waitingBytes + bytes <= context.limits.queueBytes
            && queue.waiting <= context.mostWaiting(isConnected: isConnected)
    }

    /// Removes a waiting message from a queue; false when it is in flight, or may be.
    private mutating func replace(_ session: UInt32, _ position: UInt64) -> Bool {
        guard removeWaiting(session, position) else { return false }
        finished(session, position, .dropped(.replaced))
        drop(session, .replaced)
        // The new message will be the one behind the holes.
        passKnownHoles(session)
        return true
    }

    // MARK: Positions

    /// Notes the queue position of the message that is delivered, which has a collapse key.
    mutating func addCollapsible(_ session: UInt32, _ position: UInt64) {
        let (number, isStored) = (sessions[session].number, sessions[session].isPersistent)
        let (key, sequences) = features.collapse.current
        if let former = features.collapse.find(session: number, key: key) {
            endCollapsible(former, of: session)
        }
        guard features.collapse.count < context.limits.collapsible else { return }
        let stored = StoredCollapsible(
            session: number, position: position, key: key, sequences: sequences)
        features.collapse.add(stored, pool: pool)
        if isStored { commits.records.collapsible(stored, of: owner(of: session)) }
    }

    /// Forgets a queue position that has ended.
    mutating func endCollapsible(_ session: UInt32, _ position: UInt64) {
        guard
            let place = features.collapse.find(
                session: sessions[session].number, position: position)
        else { return }
        endCollapsible(place, of: session)
    }

    private mutating func endCollapsible(_ place: UInt32, of session: UInt32) {
        let entry = features.collapse.entries[place]
        features.collapse.remove(place, pool: pool)
        if sessions[session].isPersistent {
            commits.records.collapsibleEnded(
                session: entry.session, position: entry.position, of: owner(of: session))
        }
    }

    private func owner(of session: UInt32) -> FactOwner {
        sessions[session].clientID.withBytes { FactOwner($0) }
    }

    /// Forgets the positions of a session that ends, in the group of records that ends it.
    mutating func endCollapsibles(of session: UInt32) {
        let number = sessions[session].number
        if sessions[session].isPersistent, features.collapse.holds(number) {
            commits.records.collapsiblesEnded(session: number)
        }
        features.collapse.sessionEnded(number)
    }

    /// Removes positions of ended sessions, a slice in a turn.
    mutating func removeCollapseOrphans() {
        if features.collapse.hasOrphans {
            features.collapse.removeOrphans(most: Self.orphansPerTurn, pool: pool)
        }
    }

    /// Restores a position whose session is still there. Version 4 of the store left those of
    /// ended sessions.
    mutating func restoreCollapsible(_ stored: StoredCollapsible, of owner: FactOwner) {
        guard let session = restoration.find(stored.session) else {
            commits.records.collapsibleEnded(
                session: stored.session, position: stored.position, of: owner)
            return
        }
        features.collapse.add(stored, pool: pool)
        sessions[session].follows = true
    }
}
