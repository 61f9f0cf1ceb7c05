import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Routes a message to its receivers.
extension Shard {
    /// Routes a packet of QoS 0 without RETAIN, the common case, by copying it to each receiver.
    /// False when the message needs ``route(_:to:mustCommit:)``.
    package mutating func routeAtMostOnce(
        _ raw: RawPublish, _ topic: UnsafeRawBufferPointer, _ payloadCount: Int,
        to matches: UnsafeBufferPointer<SubscriptionTrie.Match>, from publisher: Handle
    ) -> Bool {
        guard !context.topicTraces.isActive else { return false }
        var sent: UInt64 = 0
        guard !Message.sharesPayload(count: payloadCount, receivers: matches.count) else {
            return false
        }
        var receivers = matches.count
        if subscriptions.hasShared {
            receivers +=
                chooseMembers(
                    topic, qos: .atMostOnce, bytes: raw.size, from: .connection(publisher)
                ).count
            connections.beginDelivery(to: receivers)
            for choice in subscriptions.members
            where deliverAtMostOnce(raw, to: choice.session, group: choice.group) {
                sent += 1
            }
        } else {
            connections.beginDelivery(to: receivers)
        }
        let ownSession = ownSession(of: publisher, topic)
        for match in matches
        where match.session != ownSession && deliverAtMostOnce(raw, to: match.session) {
            sent += 1
        }
        connections.endDelivery()
        spend(on: receivers, WorkBudget.delivery(bytes: raw.size, qos: .atMostOnce))
        context.counters.publishesSent += sent
        context.counters.publishBytesSent &+= sent &* UInt64(payloadCount)
        return true
    }

    /// Delivers a message to all matching sessions [MQTT-4.5.0-1], `matches`, which were found last,
    /// and to members of the groups that match; the caller keeps its reference.
    ///
    /// If any receiver's copy is stored, `needsCommit` comes back true and the caller ends the
    /// group of records. All receivers get the message only after that commit, so that none sees a
    /// message that a crash could lose.
    ///
    /// `ownSession` does not get the message, because its client published it (No Local); ``noIndex``
    /// for none.
    package mutating func route(
        _ message: Message, to matches: UnsafeBufferPointer<SubscriptionTrie.Match>,
        mustCommit: Bool, from publisher: MatchPublisher? = nil, follower: UInt32 = noIndex,
        mark: UInt32 = 0, ownSession: UInt32 = noIndex
    ) -> (counts: PublishCounts, needsCommit: Bool) {
        let choices =
            subscriptions.hasShared
            ? chooseMembers(
                message.topic, qos: message.qos, bytes: message.contentBytes, from: publisher) : nil
        let (effect, notRetained) = message.retain ? retainedEffect(of: message) : (.nothing, nil)
        var needsCommit = mustCommit || effect != .nothing
        if !needsCommit, message.qos != .atMostOnce {
            needsCommit =
                matches.contains { $0.qos != .atMostOnce && sessions[$0.session].isPersistent }
                || choices?.contains {
                    $0.qos != .atMostOnce && sessions[$0.session].isPersistent
                } == true
        }
        // The caller ends the group before writing anything else, so this is its ticket.
        let ticket = needsCommit && message.qos != .atMostOnce ? commits.nextTicket : 0
        var delivery = RoutedMessage(message, ticket: ticket)
        delivery.follow(follower, mark: mark)
        retain(&delivery, effect)
        var counts = PublishCounts()
        counts.matched = matches.count + (choices?.count ?? 0)
        counts.notRetained = notRetained
        message.setReceivers(counts.matched)
        connections.beginDelivery(to: counts.matched)
        for match in matches {
            guard match.session != ownSession else {
                counts.matched -= 1
                continue
            }
            if message.retain {
                delivery.retain = keepsRetain(match.session, message.topic, group: noIndex)
            }
            // [MQTT-3.8.4-6]
            deliver(&delivery, to: match.session, qos: min(message.qos, match.qos), &counts)
        }
        if let choices {
            for place in choices.indices {
                let choice = member(at: place, of: choices, for: delivery, matches)
                delivery.group = choice.group
                if message.retain {
                    delivery.retain = keepsRetain(
                        choice.session, message.topic, group: choice.group)
                }
                deliver(&delivery, to: choice.session, qos: min(message.qos, choice.qos), &counts)
            }
        }
        if context.topicTraces.isActive {
            traceDeliveries(message, to: matches, choices, needsCommit: needsCommit)
        }
        connections.endDelivery()
        spend(
            on: counts.matched,
            WorkBudget.delivery(bytes: message.copiedBytes, qos: message.qos))
        return (counts, needsCommit)
    }

    /// Charges the turn for a message: its match, and its receivers, who cost also when it is
    /// dropped for them.
    @inline(__always)
    private mutating func spend(on receivers: Int, _ units: Int) {
        context.budget.spend(receivers * units)
        if subscriptions.hasWork {
            context.budget.spend(WorkBudget.matchStep * subscriptions.takeWork())
        }
        if rights.hasWork { chargeRights() }
    }

    // MARK: Retained messages

    /// Decides about the topic's retained message; an exceeded limit is counted and reported.
    private mutating func retainedEffect(
        of message: Message
    ) -> (RetainedStore.Effect, NotRetained?) {
        guard !message.isExpired(atMs: context.wallClockMs) else { return (.nothing, .expired) }
        var (effect, limit) = retained.effect(of: message, context)
        // What is dead takes no place from what lives.
        if limit != nil, sweepForRoom() { (effect, limit) = retained.effect(of: message, context) }
        if let limit {
            context.counters.limits.add(limit)
            context.notices.appendBounded(.notRetained(ReportedMessage(message), limit))
        }
        return (effect, limit.flatMap { NotRetained($0) })
    }

    /// Keeps or removes the topic's retained message in memory and in the store.
    private mutating func retain(_ delivery: inout RoutedMessage, _ effect: RetainedStore.Effect) {
        guard effect != .nothing else { return }
        if delivery.ticket != 0 { commits.noteRetained(ticket: delivery.ticket) }
        let message = delivery.message
        context.budget.spend(WorkBudget.retained(message.topic))
        if effect == .keep {
            delivery.number = record(message)
            keepRetained(message)
            commits.records.retained(message: delivery.number)
        } else {
            retained.remove(message.topic)
            commits.records.retainedRemoved(topic: message.topic)
        }
    }

    // MARK: Members of shared groups

    /// Copies of a message that are looked at for one to the same member.
    private static var mostCopies: Int { 1_024 }

    /// The member that was chosen for a message. When another copy of it, by a plain subscription or
    /// another group, has taken the last room in the member's queue, the group chooses another
    /// one that has room. Of very many copies the nearest ones are looked at.
    private mutating func member(
        at place: Int, of choices: UnsafeBufferPointer<SharedSubscriptions.Choice>,
        for delivery: RoutedMessage, _ matches: UnsafeBufferPointer<SubscriptionTrie.Match>
    ) -> SharedSubscriptions.Choice {
        let (choice, message) = (choices[place], delivery.message)
        let session = choice.session
        guard min(message.qos, choice.qos) != .atMostOnce,
            !context.hasRoom(
                in: sessions[session].outbound, bytes: message.contentBytes,
                isConnected: sessions[session].connection != nil),
            matches.prefix(Self.mostCopies).contains(where: { $0.session == session })
                || choices[..<place].suffix(Self.mostCopies).contains(where: {
                    $0.session == session
                }),
            case .member(let other) = askMembers(
                of: choice.group, message.topic, qos: message.qos, bytes: message.contentBytes),
            // Without a commit no receiver is stored, and none may be.
            delivery.ticket != 0 || !sessions[other.session].isPersistent
        else { return choice }
        subscriptions.give(other, at: place)
        return other
    }
}
