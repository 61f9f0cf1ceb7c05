import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Messages that members of shared groups leave behind go to other members.
extension Shard {
    /// Hands a session's waiting messages of these groups (`nil`: all groups) over to other
    /// members. With `unacknowledged` also sent QoS 1 messages. Other messages stay and lose their
    /// group, whose index may be reused.
    package mutating func handOver(_ session: UInt32, _ groups: Set<UInt32>?, unacknowledged: Bool)
    {
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
        let end: QueueEnd = groups == nil ? .sessionEnded : .dropped(.offline)
        // A stored session has only a window in memory, which is handed over at once.
        guard isStored || handOvers.mayHandOverNow(returned.count) else {
            handOverLater(returned, of: session, end)
            return
        }
        handOvers.spend(returned.count)
        for item in returned {
            pass(
                item.message, to: item.group, ticket: isStored ? commits.nextTicket : item.ticket,
                follower: follower(of: session, item.position), end)
            finished(session, item.position, .handedOver)
            item.message.release(in: pool)
        }
    }

    private mutating func handOverLater(
        _ returned: [OutboundQueue.Returned], of session: UInt32, _ end: QueueEnd
    ) {
        let (number, follows) = (sessions[session].number, sessions[session].follows)
        let batch = handOvers.append(returned, isFollowed: follows, end: end) {
            subscriptions.filter(of: $0).array
        }
        guard follows else { return }
        for (place, item) in returned.enumerated() {
            followers.positionLeft(
                FollowedPosition(number: number, position: item.position),
                as: FollowedPosition(number: batch, position: UInt64(place)))
            positionEnded(session, item.position, .handedOver)
        }
    }

    /// Hands over one slice of waiting messages.
    package mutating func runHandOvers() {
        handOvers.beginTurn()
        while let item = handOvers.next() {
            let group = item.filter.withUnsafeBytes { subscriptions.group($0) }
            let follower = item.followed.map { followers.follower(of: $0) } ?? noIndex
            pass(
                item.message.message, to: group, ticket: item.message.ticket, follower: follower,
                item.end)
            item.message.message.release(in: pool)
        }
        for number in handOvers.takeEnded() { followers.queueEnded(number) }
    }

    /// Delivers a message of a former member to another one, if there is one, after the commit
    /// `ticket`: that of its publication, or the present one if the store holds it for the former
    /// member; 0 for none. `follower` follows it further, ``noIndex`` without one; it is told `end` if
    /// nobody takes the message.
    package mutating func pass(
        _ message: Message, to group: UInt32?, ticket: UInt64, follower: UInt32, _ end: QueueEnd
    ) {
        guard let group, subscriptions.hasMembers(group) else {
            context.counters.dropped.add(.offline)
            endAtNobody(follower, end)
            return
        }
        var hasSwept = false
        subscriptions.beginSearch()
        let choice = chooseMember(
            of: group, message.topic, qos: message.qos, bytes: message.contentBytes, &hasSwept)
        guard case .member(let member) = choice else {
            lose(message.topic, choice)
            if case .withheld = choice {
                endAtNobody(follower, .dropped(.notAllowed))
            } else {
                endAtNobody(follower, end)
            }
            return
        }
        let qos = min(message.qos, member.qos)
        let mustRecord = qos != .atMostOnce && sessions[member.session].isPersistent
        let awaited = commits.areCommitted(through: ticket) ? 0 : ticket
        // The present commit is later than that of the publication.
        var delivery = RoutedMessage(
            message, ticket: mustRecord ? commits.nextTicket : awaited)
        delivery.group = member.group
        delivery.passOn(follower)
        var counts = PublishCounts()
        deliver(&delivery, to: member.session, qos: qos, &counts)
    }

    private mutating func endAtNobody(_ follower: UInt32, _ end: QueueEnd) {
        if follower != noIndex { followers.endedAtNobody(&self, follower, end) }
    }
}
