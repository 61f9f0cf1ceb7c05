import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// Shared subscriptions: each message goes to one member of a group.
extension Shard {
    /// Connected members that are asked whether they have room, before the one in turn gets it anyway.
    private static var membersAsked: Int { 8 }
    /// Members that are looked at for one that may read the topic, or whose session keeps the message:
    /// a message is not to cost the more the larger its group is.
    private static var membersSearched: Int { 1_000 }

    /// The members that get a message on this topic; valid until the next call. A group of which nobody
    /// gets it loses it, which counts unless `isCounted` says otherwise.
    mutating func chooseMembers(
        _ topic: UnsafeRawBufferPointer, qos: QoS, isCounted: Bool = true
    ) -> UnsafeBufferPointer<SharedSubscriptions.Choice> {
        choices.removeAll()
        for match in shared.match(topic) {
            let turn = chooseMember(of: match.session, topic, qos: qos)
            if case .member(let choice) = turn {
                choices.append(choice)
            } else if isCounted {
                lose(topic, turn)
            }
        }
        return choices.contents
    }

    /// Who gets a group's message.
    private enum Turn {
        case member(SharedSubscriptions.Choice)
        /// Nobody: no member that is there may read the topic; one of them.
        case withheld(session: UInt32)
        /// Nobody: no member is there, and no session keeps the message.
        case away
    }

    private mutating func lose(_ topic: UnsafeRawBufferPointer, _ turn: Turn) {
        switch turn {
        case .member: return
        case .withheld(let session): withhold(topic, from: session)
        case .away: counters.dropped.add(.away)
        }
    }

    /// The member of one group that gets the next message.
    ///
    /// Connected members take turns; one that has no room is passed over while another has. With none
    /// connected, members whose session would keep the message take turns.
    private mutating func chooseMember(
        of group: UInt32, _ topic: UnsafeRawBufferPointer, qos: QoS
    ) -> Turn {
        if let first = firstPermitted(group, topic, isOnline: true) {
            var member = first
            for _ in 0..<Self.membersAsked {
                if hasRoom(shared[member].session), mayReceive(topic, shared[member].session) {
                    shared.passTurn(member)
                    return .member(shared[member])
                }
                member = shared.next(member)
                if member == first { break }
            }
            shared.passTurn(first)
            return .member(shared[first])
        }
        let online = shared.first(group, isOnline: true)
        guard qos != .atMostOnce, let first = firstPermitted(group, topic, isOnline: false) else {
            let away = qos == .atMostOnce ? nil : shared.first(group, isOnline: false)
            guard let asked = online ?? away else { return .away }
            return .withheld(session: shared[asked].session)
        }
        var member = first
        for _ in 0..<Self.membersSearched {
            let choice = shared[member]
            if sessions[choice.session].isPersistent, min(qos, choice.qos) != .atMostOnce,
                mayReceive(topic, choice.session)
            {
                shared.passTurn(member)
                return .member(choice)
            }
            member = shared.next(member)
            if member == first { break }
        }
        return online.map { .withheld(session: shared[$0].session) } ?? .away
    }

    /// Of a group's connected or absent members, the next one in turn that may read the topic; `nil`
    /// when none may.
    private func firstPermitted(
        _ group: UInt32, _ topic: UnsafeRawBufferPointer, isOnline: Bool
    ) -> UInt32? {
        guard let first = shared.first(group, isOnline: isOnline) else { return nil }
        var member = first
        for _ in 0..<Self.membersSearched {
            if mayReceive(topic, shared[member].session) { return member }
            member = shared.next(member)
            if member == first { break }
        }
        return nil
    }

    private func hasRoom(_ session: UInt32) -> Bool {
        guard let target = sessions[session].connection else { return false }
        return connections[target.index].output.count < settings.outputBytes
            && sessions[session].outbound.waiting == 0
            && sessions[session].outbound.inFlight < settings.maxInFlight
    }

    /// Takes a session that ends out of its groups; what it had not acknowledged goes to others.
    mutating func leaveGroups(_ session: UInt32) {
        guard sessions[session].shared.count > 0 else { return }
        shared.removeAll(&sessions[session].shared)
        handOver(session, nil, unacknowledged: true)
    }

    /// Gives what waits of these groups' messages (of all groups with `nil`) to members that remain;
    /// with `unacknowledged` also QoS 1 messages that were sent and not acknowledged. What stays is
    /// the session's own from now on: the index of a group that ends is given again.
    mutating func handOver(_ session: UInt32, _ groups: Set<UInt32>?, unacknowledged: Bool) {
        let before = sessions[session].outbound
        let returned = sessions[session].outbound.takeShared(
            unacknowledged: unacknowledged, pool: pool
        ) { group in
            guard groups?.contains(group) ?? true else { return .keep }
            return shared.hasMembers(group) ? .giveBack : .own
        }
        guard !returned.isEmpty else { return }
        let after = sessions[session].outbound
        totals.waiting -= Int(before.waiting - after.waiting)
        totals.waitingBytes -= before.waitingBytes - after.waitingBytes
        totals.inFlight -= Int(before.inFlight - after.inFlight)
        let isStored = isDurable && sessions[session].isPersistent
        // Of a session in the store, memory holds a window, which changes hands in one group.
        guard isStored || (handOvers.isEmpty && returned.count <= handOversLeft) else {
            let groups = Set(returned.map(\.group))
            handOvers.append(
                HandOver(
                    messages: returned,
                    filters: Dictionary(
                        uniqueKeysWithValues: groups.map { ($0, shared.text(of: $0).array) })))
            return
        }
        handOversLeft -= returned.count
        for item in returned {
            finished(session, item.position)
            pass(item.message, to: item.group, isStored: isStored)
            item.message.release(in: pool)
        }
    }

    /// Messages that one turn hands over: each may look at many members.
    static var handOversPerTurn: Int { 256 }

    /// A slice of what waits to be handed over, in order.
    mutating func runHandOvers() {
        handOversLeft = Self.handOversPerTurn
        while handOversLeft > 0, !handOvers.isEmpty {
            guard let (message, filter) = handOvers[0].next() else {
                handOvers.removeFirst()
                continue
            }
            handOversLeft -= 1
            if let group = filter.withUnsafeBytes({ shared.group($0) }) {
                pass(message, to: group, isStored: false)
            } else {
                counters.dropped.add(.away)
            }
            message.release(in: pool)
        }
    }

    /// Delivers a message that a member gave back to another one, if there is any.
    mutating func pass(_ message: Message, to group: UInt32, isStored: Bool) {
        guard shared.hasMembers(group) else {
            counters.dropped.add(.away)
            return
        }
        let turn = chooseMember(of: group, message.topic, qos: message.qos)
        guard case .member(let choice) = turn else {
            lose(message.topic, turn)
            return
        }
        let qos = min(message.qos, choice.qos)
        var number: UInt64 = 0
        let mustRecord = qos != .atMostOnce && sessions[choice.session].isPersistent
        if mustRecord { number = record(message) }
        // Leaves once it is stored that the first member has it no more.
        let ticket = mustRecord || isStored ? writes.lastTicket + 1 : 0
        var counts = PublishCounts()
        deliver(
            message, number, to: choice.session, qos: qos, retain: false, ticket: ticket,
            group: choice.group, &counts)
    }
}
