import MQTTCodec
import Structures

/// The choice of the member that gets a message.
extension SharedSubscriptions {
    /// What a member could do with a message now.
    public enum Readiness {
        /// Its client is connected, and is sent the message at once.
        case atOnce
        /// Its queue has room for the message.
        case queues
        /// It would get the message only at the price of a loss: of this message, or of one that waits.
        case isFull
        /// Its client is offline, and its session keeps no such message.
        case keepsNone
    }

    /// The member of a group that gets a message.
    public enum Decision: BitwiseCopyable {
        case member(Choice)
        /// No member has room. `member` stands first among them, and its turn has not passed.
        case full(member: UInt32)
        /// No member may read the topic; `session` is one of them, for the log.
        case withheld(session: UInt32)
        /// No member is connected, and no member's session keeps the message.
        case offline
    }

    /// The members of one ring that were found, the first of each kind.
    private struct Found {
        var atOnce: UInt32?
        var queues: UInt32?
        var full: UInt32?
        /// A member that would take the message, and may not read the topic.
        var refused: UInt32?
    }

    /// Connected members asked for one that is sent the message at once, before it waits with another.
    private static var mostAsked: Int { 8 }
    /// Members of each ring that are asked at most. Bounds the cost of a message to a large group.
    public static var mostSearched: Int { 1_000 }

    /// Chooses the member of one group that gets the next message of QoS `qos`, and gives the turn to
    /// the one behind it.
    ///
    /// Connected members come first, those that are sent the message at once before those whose queue
    /// takes it; then offline members whose session keeps it. Only when none of them has room is the
    /// answer ``Decision/full(member:)``. `mayReceive` tells whether a session may read the topic.
    /// `asked` grows by the number of members that were looked at, at most `most` in each ring.
    public mutating func choose(
        of group: UInt32, qos: QoS, most: Int = mostSearched, asked: inout Int,
        mayReceive: (UInt32) -> Bool, readiness: (Choice) -> Readiness
    ) -> Decision {
        let online = search(
            group, isOnline: true, most: most, asked: &asked, mayReceive: mayReceive,
            readiness: readiness)
        if let member = online.atOnce ?? online.queues { return .member(takeTurn(member)) }
        var offline = Found()
        if qos != .atMostOnce {
            offline = search(
                group, isOnline: false, most: most, asked: &asked, mayReceive: mayReceive,
                readiness: readiness)
        }
        if let member = offline.queues { return .member(takeTurn(member)) }
        if let member = online.full ?? offline.full { return .full(member: member) }
        let refused = online.refused ?? offline.refused
        return refused.map { .withheld(session: self[$0].session) } ?? .offline
    }

    private func search(
        _ group: UInt32, isOnline: Bool, most: Int, asked: inout Int,
        mayReceive: (UInt32) -> Bool, readiness: (Choice) -> Readiness
    ) -> Found {
        var found = Found()
        guard let first = first(group, isOnline: isOnline) else { return found }
        // No offline member is sent anything at once.
        var preferring = isOnline ? Self.mostAsked : 1
        var member = first
        for _ in 0..<most {
            asked += 1
            let readiness = readiness(self[member])
            // A second one that is full teaches nothing, and costs no question to the rules.
            if readiness != .keepsNone, readiness != .isFull || found.full == nil {
                if mayReceive(self[member].session) {
                    preferring -= 1
                    switch readiness {
                    case .atOnce:
                        found.atOnce = member
                        return found
                    case .queues: found.queues = found.queues ?? member
                    case .isFull, .keepsNone: found.full = found.full ?? member
                    }
                    if preferring <= 0, found.queues != nil { return found }
                } else {
                    found.refused = found.refused ?? member
                }
            }
            member = next(member)
            if member == first { break }
        }
        return found
    }

    // MARK: Members

    /// True while the member with this index is one of the group, and the one that it was when
    /// ``joined(_:)`` had this value.
    public func contains(member: UInt32, joined: UInt32, in group: UInt32) -> Bool {
        members[member].group == group && members[member].joined == joined
    }

    /// Tells members apart that have had the same index.
    public func joined(_ member: UInt32) -> UInt32 { members[member].joined }

    /// True while a member stands in the ring of connected ones.
    public func isOnline(_ member: UInt32) -> Bool { members[member].isOnline }

    /// A number that changes when a member comes to the group, leaves it, or goes online or offline.
    public func version(of group: UInt32) -> UInt32 { groups[group].version }

    /// Gives the turn to the member behind this one, which gets the message.
    public mutating func takeTurn(_ member: UInt32) -> Choice {
        passTurn(member)
        return self[member]
    }

    /// The members of a group, those whose turn comes first in front, the connected ones before the
    /// offline ones; at most `most`.
    public func members(of group: UInt32, most: Int) -> [Choice] {
        var found: [Choice] = []
        for isOnline in [true, false] {
            guard let first = first(group, isOnline: isOnline) else { continue }
            var member = first
            while found.count < most {
                found.append(self[member])
                member = next(member)
                if member == first { break }
            }
        }
        return found
    }

    /// The connected or offline member whose turn is next; `nil` when the group has none of that
    /// kind.
    public func first(_ group: UInt32, isOnline: Bool) -> UInt32? {
        let ring = groups[group][isOnline: isOnline]
        return ring.isEmpty ? nil : ring.first
    }

    /// True while the group has members.
    public func hasMembers(_ group: UInt32) -> Bool { memberCount(of: group) > 0 }
}
