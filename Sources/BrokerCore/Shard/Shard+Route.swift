import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// A message on its way to the owners of its receivers.
extension Shard {
    /// A packet at QoS 0 without RETAIN, the common case: a copy for each receiver. False when the message
    /// has to go the general way.
    mutating func routeAtMostOnce(
        _ frame: PacketDecoder.Frame, _ topic: UnsafeRawBufferPointer,
        _ payload: UnsafeRawBufferPointer
    ) -> Bool {
        let size = PublishEncoder.size(
            topicCount: topic.count, payloadCount: payload.count, qos: .atMostOnce)
        guard payload.count < 16 * 1_024, size == Int(frame.packet.count) else { return false }
        // The packet begins where its topic stands, less the fixed header and the topic's length.
        guard let topicBase = topic.baseAddress else { return false }
        let packet = UnsafeRawBufferPointer(
            start: topicBase - (size - topic.count - payload.count), count: size)
        let sent = context.counters.publishesSent
        for match in receivers(of: topic) { deliverAtMostOnce(packet, to: match.session) }
        if subscriptions.hasShared {
            for choice in chooseMembers(topic, qos: .atMostOnce) {
                deliverAtMostOnce(packet, to: choice.session)
            }
        }
        context.counters.publishBytesSent &+=
            (context.counters.publishesSent &- sent) &* UInt64(payload.count)
        return true
    }

    @inline(__always)
    private mutating func deliverAtMostOnce(_ packet: UnsafeRawBufferPointer, to session: UInt32) {
        guard let target = sessions[session].connection, connections[target].machine.isOpen else {
            drop(session, .away)
            return
        }
        guard connections[target].outlet.count < context.limits.outputBytes else {
            drop(session, .slowReader)
            return
        }
        sessions[session].publishesSent += 1
        context.counters.publishesSent += 1
        connections[target].outlet.append(packet: packet, pool: context.pool)
        connections.markDirty(target)
    }

    /// Hands a message to every session that wants it [MQTT-4.5.0-1]; the caller keeps its reference.
    ///
    /// A message that is stored for any receiver reaches all of them after the commit of the group that the
    /// caller ends when `needsCommit` comes back true: no receiver sees what a crash could take back.
    mutating func route(
        _ message: Message, mustCommit: Bool
    ) -> (counts: PublishCounts, needsCommit: Bool) {
        let matches = receivers(of: message.topic)
        let choices =
            subscriptions.hasShared ? chooseMembers(message.topic, qos: message.qos) : nil
        let effect = message.retain ? retainedEffect(of: message) : .nothing
        var needsCommit = mustCommit || effect != .nothing
        if !needsCommit, message.qos != .atMostOnce {
            needsCommit =
                matches.contains { $0.qos != .atMostOnce && sessions[$0.session].isPersistent }
                || choices?.contains {
                    $0.qos != .atMostOnce && sessions[$0.session].isPersistent
                } == true
        }
        // The group's ticket is the next one; its caller takes it before anything else is written.
        let ticket = needsCommit && message.qos != .atMostOnce ? commits.nextTicket : 0
        var delivery = RoutedMessage(message, ticket: ticket)
        retain(&delivery, effect)
        var counts = PublishCounts()
        counts.matched = matches.count + (choices?.count ?? 0)
        for match in matches {
            // [MQTT-3.8.4-6]
            deliver(&delivery, to: match.session, qos: min(message.qos, match.qos), &counts)
        }
        if let choices {
            for choice in choices {
                delivery.group = choice.group
                deliver(&delivery, to: choice.session, qos: min(message.qos, choice.qos), &counts)
            }
        }
        return (counts, needsCommit)
    }

    // MARK: Retained messages

    /// What becomes of the retained message of a topic; a limit that is met is counted and reported.
    private mutating func retainedEffect(of message: Message) -> RetainedStore.Effect {
        let (effect, limit) = retained.effect(of: message, context)
        if let limit {
            context.counters.limits.add(limit)
            context.notices.appendBounded(.notRetained(topic: [UInt8](message.topic), limit))
        }
        return effect
    }

    /// Keeps or removes the topic's retained message, in memory and in the store.
    private mutating func retain(_ delivery: inout RoutedMessage, _ effect: RetainedStore.Effect) {
        guard effect != .nothing else { return }
        if delivery.ticket != 0 { commits.noteRetained(ticket: delivery.ticket) }
        let message = delivery.message
        if effect == .keep {
            delivery.number = record(message)
            retained.keep(message)
            commits.records.retained(message: delivery.number)
        } else {
            retained.remove(message.topic)
            commits.records.retainedRemoved(topic: message.topic)
        }
    }

    // MARK: Receivers

    /// Sessions that want a topic and may read it, each once; valid until the next call.
    @inline(__always)
    mutating func receivers(
        of topic: UnsafeRawBufferPointer, isCounted: Bool = true
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match> {
        guard rights.areRestricted else { return subscriptions.match(topic) }
        return permittedReceivers(of: topic, isCounted: isCounted)
    }

    /// The sessions from which the rules withhold a topic are cached with the matches, so a topic that is
    /// published again costs no question.
    private mutating func permittedReceivers(
        of topic: UnsafeRawBufferPointer, isCounted: Bool
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match> {
        let permitted = subscriptions.match(topic) { session in
            guard let verdict = rights.decide(.subscribe, topic, for: sessions[session]),
                !verdict.isAllowed
            else { return true }
            if isCounted {
                rights.report(
                    .withheld, sessions[session], topic, line: verdict.line, &context.notices)
            }
            return false
        }
        if isCounted, permitted.withheld > 0 {
            context.counters.accessRefusals.add(.deliver, UInt64(permitted.withheld))
        }
        return permitted.matches
    }

    /// The members of shared groups that get a message on this topic; valid until the next call. A group
    /// without one loses the message, which counts unless `isCounted` says otherwise.
    mutating func chooseMembers(
        _ topic: UnsafeRawBufferPointer, qos: QoS, isCounted: Bool = true
    ) -> UnsafeBufferPointer<SharedSubscriptions.Choice> {
        for match in subscriptions.matchGroups(topic) {
            let choice = chooseMember(of: match.session, topic, qos: qos)
            if case .member(let member) = choice {
                subscriptions.give(member)
            } else if isCounted {
                lose(topic, choice)
            }
        }
        return subscriptions.members
    }

    private mutating func chooseMember(
        of group: UInt32, _ topic: UnsafeRawBufferPointer, qos: QoS
    ) -> Subscriptions.Choice {
        subscriptions.chooseMember(
            of: group, qos: qos, mayReceive: { rights.mayReceive(topic, sessions[$0]) },
            hasRoom: { session in
                guard let target = sessions[session].connection else { return false }
                return connections[target].outlet.count < context.limits.outputBytes
                    && sessions[session].outbound.waiting == 0
                    && sessions[session].outbound.inFlight < context.limits.maxInFlight
            }, isPersistent: { sessions[$0].isPersistent })
    }

    private mutating func lose(_ topic: UnsafeRawBufferPointer, _ choice: Subscriptions.Choice) {
        switch choice {
        case .member: return
        case .withheld(let session):
            rights.refuseDelivery(.withheld, sessions[session], topic, &context)
        case .offline: context.counters.dropped.add(.away)
        }
    }

    // MARK: Messages that members of shared groups leave behind

    /// Gives the messages that wait in a session and came by these groups (all groups with `nil`) to members
    /// that remain; with `unacknowledged` also QoS 1 messages that were sent and not acknowledged. The rest
    /// is the session's own from now on: the index of a group that ends is given again.
    mutating func handOver(_ session: UInt32, _ groups: Set<UInt32>?, unacknowledged: Bool) {
        let before = sessions[session].outbound
        let returned = sessions[session].outbound.takeShared(
            unacknowledged: unacknowledged, pool: context.pool
        ) { group in
            guard groups?.contains(group) ?? true else { return .keep }
            return subscriptions.hasMembers(group) ? .giveBack : .own
        }
        guard !returned.isEmpty else { return }
        sessions.totals.replace(before, by: sessions[session].outbound)
        let isStored = commits.isDurable && sessions[session].isPersistent
        // Of a session in the store, memory holds a window, which changes hands in one group.
        guard isStored || handOvers.mayHandOverNow(returned.count) else {
            handOvers.append(returned) { subscriptions.filter(of: $0).array }
            return
        }
        handOvers.spend(returned.count)
        for item in returned {
            finished(session, item.position)
            pass(item.message, to: item.group, isStored: isStored)
            item.message.release(in: pool)
        }
    }

    /// A slice of the messages that wait to be handed over.
    mutating func runHandOvers() {
        handOvers.beginTurn()
        while let (message, filter) = handOvers.next() {
            pass(message, to: filter.withUnsafeBytes { subscriptions.group($0) }, isStored: false)
            message.release(in: pool)
        }
    }

    /// Delivers a message that a member gave back to another one, if there is any. With `isStored` the store
    /// has it as the first member's.
    mutating func pass(_ message: Message, to group: UInt32?, isStored: Bool) {
        guard let group, subscriptions.hasMembers(group) else {
            context.counters.dropped.add(.away)
            return
        }
        let choice = chooseMember(of: group, message.topic, qos: message.qos)
        guard case .member(let member) = choice else {
            lose(message.topic, choice)
            return
        }
        let qos = min(message.qos, member.qos)
        let mustRecord = qos != .atMostOnce && sessions[member.session].isPersistent
        // Leaves once it is stored that the first member does not have it any more.
        var delivery = RoutedMessage(
            message, ticket: mustRecord || isStored ? commits.nextTicket : 0)
        delivery.group = member.group
        var counts = PublishCounts()
        deliver(&delivery, to: member.session, qos: qos, &counts)
    }
}
