import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// Chooses the members of shared groups that get a message.
extension Shard {
    /// The chosen members of shared groups for the topic that was matched last; valid until the next
    /// call. A group without one loses the message, which is counted unless `isCounted` is false.
    package mutating func chooseMembers(
        _ topic: UnsafeRawBufferPointer, qos: QoS, isCounted: Bool = true
    ) -> UnsafeBufferPointer<SharedSubscriptions.Choice> {
        let isAhead = subscriptions.isAhead(topic, qos)
        subscriptions.beginChoices()
        for match in subscriptions.groups {
            let ahead = isAhead ? aheadChoice(of: match.session) : nil
            let choice = ahead ?? chooseMember(of: match.session, topic, qos: qos)
            if case .member(let member) = choice {
                subscriptions.give(member)
            } else if isCounted {
                lose(topic, choice)
            }
        }
        if isAhead { subscriptions.endAhead() }
        return subscriptions.members
    }

    package mutating func chooseMember(
        of group: UInt32, _ topic: UnsafeRawBufferPointer, qos: QoS
    ) -> Subscriptions.Choice {
        subscriptions.chooseMember(
            of: group, qos: qos, mayReceive: { rights.mayReceive(topic, sessions[$0]) },
            isConnected: { session in
                sessions[session].connection.map { connections[$0].machine.isOpen } ?? false
            },
            hasRoom: { session in
                guard let target = sessions[session].connection else { return false }
                return connections[target].outlet.count < context.limits.outputBytes
                    && sessions[session].outbound.waiting == 0
                    && sessions[session].outbound.inFlight < context.limits.maxInFlight
            }, isPersistent: { sessions[$0].isPersistent })
    }

    /// Counts and reports that a group has no member for a message.
    package mutating func lose(_ topic: UnsafeRawBufferPointer, _ choice: Subscriptions.Choice) {
        switch choice {
        case .member: return
        case .withheld(let session):
            rights.refuseDelivery(.withheld, sessions[session], topic, &context)
        case .offline: context.counters.dropped.add(.offline)
        }
    }

    // MARK: Slices

    /// Goes on with the choice of members for a message whose match in slices is complete, for about so
    /// many steps; the last group may exceed them. True when all are chosen: ``chooseMembers(_:qos:isCounted:)``
    /// then takes them, except those that have left or changed meanwhile.
    package mutating func chooseSlice(
        _ topic: UnsafeRawBufferPointer, qos: QoS, steps: Int
    ) -> Bool {
        var left = steps
        while left > 0 {
            guard let group = subscriptions.nextGroupAhead(topic, qos) else { return true }
            let before = (subscriptions.choiceSteps, rights.steps)
            subscriptions.keepAhead(chooseMember(of: group, topic, qos: qos), of: group)
            left -= 1 + subscriptions.choiceSteps - before.0
            left -= (rights.steps - before.1) * WorkBudget.ruleStep / WorkBudget.matchStep
        }
        return false
    }

    private func aheadChoice(of group: UInt32) -> Subscriptions.Choice? {
        subscriptions.aheadChoice(of: group) { session in
            sessions[session].connection.map { connections[$0].machine.isOpen } ?? false
        }
    }
}
