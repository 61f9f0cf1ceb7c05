import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// Chooses the members of shared groups that get a message.
extension Shard {
    /// Groups whose members are all asked again at the delivery, because the one chosen ahead is full.
    private static var mostAsked: Int { 128 }

    /// The chosen members of shared groups for the topic that was matched last, and for a message of so
    /// many bytes; valid until the next call. A group without one loses the message, which is counted
    /// unless `isCounted` is false. Groups that were sent their copies ahead are left out for the
    /// `publisher` whose message they were sent.
    package mutating func chooseMembers(
        _ topic: UnsafeRawBufferPointer, qos: QoS, bytes: Int, from publisher: MatchPublisher?,
        isCounted: Bool = true
    ) -> UnsafeBufferPointer<SharedSubscriptions.Choice> {
        let isAhead = subscriptions.isAhead(topic, qos, for: publisher)
        subscriptions.beginChoices()
        var hasSwept = false
        // Groups of full members that may look for room once more.
        var left = Self.mostAsked
        for match in subscriptions.groups {
            let group = match.session
            guard !isAhead || !subscriptions.isDelivered(to: group) else { continue }
            let ahead = isAhead ? aheadChoice(of: group, qos: qos, bytes: bytes) : nil
            let choice: SharedSubscriptions.Decision
            switch ahead {
            case .full(let member)? where left <= 0:
                choice = .member(subscriptions.takeTurn(member))
            case .full?, nil:
                if ahead != nil { left -= 1 }
                choice = chooseMember(of: group, topic, qos: qos, bytes: bytes, &hasSwept)
            case let kept?: choice = kept
            }
            if case .member(let member) = choice {
                subscriptions.give(member)
            } else if isCounted {
                lose(topic, choice)
            }
        }
        if isAhead { subscriptions.endAhead() }
        return subscriptions.members
    }

    /// The member of a group that gets a message of so many bytes. While any has room, none loses a
    /// message for it; when all are full, the one in turn makes room by `limits.queue_policy`. Expired
    /// messages make room first, once for a message: `hasSwept` is true from then on.
    package mutating func chooseMember(
        of group: UInt32, _ topic: UnsafeRawBufferPointer, qos: QoS, bytes: Int,
        _ hasSwept: inout Bool
    ) -> SharedSubscriptions.Decision {
        while true {
            let choice = askMembers(of: group, topic, qos: qos, bytes: bytes)
            guard case .full(let member) = choice else { return choice }
            // What is dead takes no place from what lives.
            let maySweep = qos != .atMostOnce && !hasSwept
            if maySweep { hasSwept = true }
            guard maySweep, sweepForRoom() else {
                return .member(subscriptions.takeTurn(member))
            }
        }
    }

    /// The member that has room, whose turn then passes; else one without room, whose turn stays.
    mutating func askMembers(
        of group: UInt32, _ topic: UnsafeRawBufferPointer, qos: QoS, bytes: Int
    ) -> SharedSubscriptions.Decision {
        subscriptions.chooseMember(
            of: group, qos: qos, mayReceive: { rights.mayReceive(topic, sessions[$0]) },
            isConnected: { Self.isConnected($0, sessions, connections) },
            readiness: {
                Self.readiness(
                    of: $0, qos: qos, bytes: bytes, sessions, connections, context,
                    isDurable: commits.isDurable)
            })
    }

    private static func isConnected(
        _ session: UInt32, _ sessions: borrowing Sessions, _ connections: borrowing Connections
    ) -> Bool {
        guard let target = sessions[session].connection else { return false }
        return connections[target].machine.isOpen
    }

    /// What a member could do with a message of so many bytes now.
    private static func readiness(
        of member: SharedSubscriptions.Choice, qos: QoS, bytes: Int,
        _ sessions: borrowing Sessions, _ connections: borrowing Connections,
        _ context: borrowing ShardContext, isDurable: Bool
    ) -> SharedSubscriptions.Readiness {
        let isKept = sessions[member.session].isPersistent
        let keepsQoS = min(qos, member.qos) != .atMostOnce
        let isStored = isDurable && isKept
        let queue = sessions[member.session].outbound
        guard let target = sessions[member.session].connection else {
            guard isKept, keepsQoS else { return .keepsNone }
            return (isStored || !queue.isFull)
                && context.hasRoom(in: queue, bytes: bytes, isConnected: false) ? .queues : .isFull
        }
        let isRead =
            connections[target].machine.isOpen
            && connections[target].outlet.count < context.limits.outputBytes
        if isRead, queue.waiting == 0, queue.inFlight < context.limits.maxInFlight {
            return .atOnce
        }
        guard keepsQoS else { return isRead ? .queues : .isFull }
        let isInWindow =
            isStored && QueueWindow.takes(bytes, queue, queueBytes: context.limits.queueBytes)
        return isInWindow
            || (isStored || !queue.isFull)
                && context.hasRoom(in: queue, bytes: bytes, isConnected: true)
            ? .queues : .isFull
    }

    /// Counts and reports that a group has no member for a message.
    package mutating func lose(
        _ topic: UnsafeRawBufferPointer, _ choice: SharedSubscriptions.Decision
    ) {
        switch choice {
        case .member, .full: return
        case .withheld(let session):
            rights.refuseDelivery(.withheld, sessions[session], topic, &context)
        case .offline: context.counters.dropped.add(.offline)
        }
    }

    // MARK: Slices

    /// Goes on with the choice of members for a message whose match in slices is complete, for about so
    /// many steps; the last group may exceed them. True when all are chosen:
    /// ``chooseMembers(_:qos:bytes:from:isCounted:)`` then takes them, except those that have left or changed
    /// meanwhile. Members that are sent a copy here are not among them.
    package mutating func chooseSlice(
        _ topic: UnsafeRawBufferPointer, qos: QoS, steps: Int, copy: AtMostOnceCopy?,
        for publisher: MatchPublisher
    ) -> Bool {
        var left = steps
        subscriptions.beginAhead(topic, qos, sender: copy == nil ? nil : publisher)
        // They are many, so that nobody's answer waits for them.
        if copy != nil { connections.beginDelivery(to: .max) }
        defer { connections.endDelivery() }
        while left > 0 {
            guard let group = subscriptions.nextGroupAhead() else { return true }
            let before = (subscriptions.choiceSteps, rights.steps)
            if let copy {
                deliver(copy, of: topic, to: group)
                left -= 1
            } else {
                // Room for the whole message is looked for once more at the delivery.
                subscriptions.keepAhead(askMembers(of: group, topic, qos: qos, bytes: 0), of: group)
            }
            left -= 1 + subscriptions.choiceSteps - before.0
            left -= (rights.steps - before.1) * WorkBudget.ruleStep / WorkBudget.matchStep
        }
        return false
    }

    /// Sends a group its copy of a message whose other copies may follow in later turns.
    private mutating func deliver(
        _ copy: AtMostOnceCopy, of topic: UnsafeRawBufferPointer, to group: UInt32
    ) {
        // A copy that no queue keeps needs no room there.
        var hasSwept = true
        let choice = chooseMember(
            of: group, topic, qos: .atMostOnce, bytes: copy.size, &hasSwept)
        subscriptions.noteDelivered(to: group)
        context.budget.spend(WorkBudget.delivery(bytes: copy.size, qos: .atMostOnce))
        switch (copy, choice) {
        case (.packet(let raw), .member(let member)):
            if deliverAtMostOnce(raw, to: member.session, group: member.group) {
                context.counters.publishSent(.atMostOnce, payloadBytes: raw.payload.count)
            }
        case (.packet, _): lose(topic, choice)
        case (.system(let message), .member(let member)):
            sendSystemMessage(message, to: member.session, retain: false)
        case (.system, _): return
        }
    }

    /// What was chosen for a group ahead, if it still holds; full when the member has no room by now.
    private func aheadChoice(
        of group: UInt32, qos: QoS, bytes: Int
    ) -> SharedSubscriptions.Decision? {
        let choice = subscriptions.aheadChoice(of: group) {
            Self.isConnected($0, sessions, connections)
        }
        guard case .member(let member)? = choice else { return choice }
        let readiness = Self.readiness(
            of: member, qos: qos, bytes: bytes, sessions, connections, context,
            isDurable: commits.isDurable)
        switch readiness {
        case .atOnce, .queues: return choice
        case .isFull: return .full(member: member.member)
        case .keepsNone: return nil
        }
    }
}
