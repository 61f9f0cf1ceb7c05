import MQTTCodec
import MQTTCore
import Structures

/// Finds a message's receivers.
///
/// A match that takes many steps is made in slices, one topic at a time, and with it the choice of
/// members of very many shared groups: its publisher waits, and so do others that have such a match to
/// make. Any other match is made at once.
extension Shard {
    /// Sessions that subscribe to a topic and may read it, each once; valid until the next call.
    /// Groups with a matching filter are found too. However many steps it takes, it is not divided.
    package mutating func receivers(
        of topic: UnsafeRawBufferPointer, isCounted: Bool = true
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match> {
        receivers(of: topic, most: .max, isCounted: isCounted)
            ?? UnsafeBufferPointer(start: nil, count: 0)
    }

    /// As ``receivers(of:isCounted:)``; `nil` when it takes more than `most` steps besides the
    /// visits of these sessions.
    @inline(__always)
    package mutating func receivers(
        of topic: UnsafeRawBufferPointer, most: Int, isCounted: Bool = true
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match>? {
        guard rights.areRestricted else { return subscriptions.match(topic, most: most) }
        return permittedReceivers(of: topic, most: most, isCounted: isCounted)
    }

    /// The cache of matches includes the access decisions, so a repeated topic costs no question.
    private mutating func permittedReceivers(
        of topic: UnsafeRawBufferPointer, most: Int, isCounted: Bool
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match>? {
        let bound = most == .max ? .max : rights.steps + WorkBudget.mostRuleSteps
        let permitted = subscriptions.match(topic, most: most) { session in
            guard rights.steps <= bound else { return nil }
            guard sessions[session].isUsed,
                let verdict = rights.decide(.subscribe, topic, for: sessions[session]),
                !verdict.isAllowed
            else { return true }
            if isCounted {
                rights.report(
                    .withheld, sessions[session], topic, line: verdict.line, &context.notices)
            }
            return false
        }
        if isCounted, let withheld = permitted?.withheld, withheld > 0 {
            context.counters.accessRefusals.add(.deliver, UInt64(withheld))
        }
        return permitted?.matches
    }

    // MARK: Slices

    /// The receivers of a client's message; `nil` when they are not all found in this turn, or the
    /// members of very many groups not all chosen. Then the connection waits for a later turn, and offers
    /// the packet again.
    @inline(__always)
    package mutating func receivers(
        of topic: UnsafeRawBufferPointer, qos: QoS, from publisher: Handle
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match>? {
        if let matches = receivers(of: topic, most: WorkBudget.mostMatchSteps) { return matches }
        return matchSlice(topic, qos, from: publisher, copy: nil)
    }

    /// The receivers of a client's message of QoS 0 without RETAIN, as the other method finds them. Very
    /// many groups are sent their copies meanwhile, if the packet is copied as it is.
    @inline(__always)
    package mutating func receivers(
        of topic: UnsafeRawBufferPointer, _ raw: RawPublish?, from publisher: Handle
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match>? {
        if let matches = receivers(of: topic, most: WorkBudget.mostMatchSteps) { return matches }
        return matchSlice(
            topic, .atMostOnce, from: publisher,
            copy: context.topicTraces.isActive ? nil : raw.flatMap { AtMostOnceCopy($0) })
    }

    @inline(never)
    private mutating func matchSlice(
        _ topic: UnsafeRawBufferPointer, _ qos: QoS, from client: Handle, copy: AtMostOnceCopy?
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match>? {
        let publisher = MatchPublisher.connection(client)
        // What has just been read begins no match in slices while others wait in line.
        guard
            matchPublisher == publisher || turn.isContinuing || connections.turnWaiterCount == 0,
            matchSlice(topic, qos, for: publisher, copy: copy)
        else {
            connections.awaitTurn(client)
            return nil
        }
        defer { endMatch(of: publisher) }
        return receivers(of: topic)
    }

    /// True when the receivers of a topic are found, which may take slices of several turns. Then
    /// ``receivers(of:isCounted:)`` costs little; ``endMatch(of:)`` has to follow. Without a QoS it is a
    /// question, which chooses no members of groups.
    package mutating func isMatched(
        _ topic: UnsafeRawBufferPointer, qos: QoS?, for publisher: MatchPublisher,
        copy: AtMostOnceCopy? = nil
    ) -> Bool {
        receivers(of: topic, most: WorkBudget.mostMatchSteps, isCounted: false) != nil
            || matchSlice(topic, qos, for: publisher, copy: copy)
    }

    /// Goes on with a match for the share of the turn; true when it is complete. False also while
    /// another publisher has one under way, and waits for a turn to go on with it.
    private mutating func matchSlice(
        _ topic: UnsafeRawBufferPointer, _ qos: QoS?, for publisher: MatchPublisher,
        copy: AtMostOnceCopy?
    ) -> Bool {
        // Steps of the attempt to make it at once.
        chargeMatch()
        guard matchPublisher == publisher || !isMatchPublisherWaiting else { return false }
        // What was chosen for another publisher's message, which was not routed, is of no use.
        if matchPublisher != publisher { subscriptions.endAhead() }
        matchPublisher = publisher
        let steps = context.budget.matchSteps
        let isComplete =
            rights.areRestricted
            ? permittedSlice(topic, steps: steps, isReported: qos != nil && publisher != .system)
            : subscriptions.matchSlice(topic, steps: steps)
        chargeMatch()
        guard isComplete, let qos, subscriptions.hasShared else { return isComplete }
        let areChosen = chooseSlice(
            topic, qos: qos, steps: context.budget.matchSteps, copy: copy,
            for: publisher)
        chargeMatch()
        return areChosen
    }

    private mutating func permittedSlice(
        _ topic: UnsafeRawBufferPointer, steps: Int, isReported: Bool
    ) -> Bool {
        subscriptions.matchSlice(topic, steps: steps) { session, steps in
            let before = rights.steps
            defer {
                steps -= (rights.steps - before) * WorkBudget.ruleStep / WorkBudget.matchStep
            }
            guard sessions[session].isUsed,
                let verdict = rights.decideInSlice(topic, for: sessions[session]),
                !verdict.isAllowed
            else { return true }
            if isReported {
                rights.report(
                    .withheld, sessions[session], topic, line: verdict.line, &context.notices)
            }
            return false
        }
    }

    private mutating func chargeMatch() {
        context.budget.spend(WorkBudget.matchStep * subscriptions.takeWork())
        if rights.hasWork { chargeRights() }
    }

    private var isMatchPublisherWaiting: Bool {
        switch matchPublisher {
        case nil: false
        case .features: followers.awaitsMatch
        case .question: followers.awaitsReceivers
        case .system: system.isPublishing
        case .connection(let handle):
            connections.isCurrent(handle)
                && (connections[handle].intake.awaitsTurn
                    || connections[handle].machine.isEnding)
        }
    }

    /// Lets others make their matches in slices. The publisher's share of the turn ends, so that
    /// those who wait come first.
    package mutating func endMatch(of publisher: MatchPublisher) {
        guard matchPublisher == publisher else { return }
        matchPublisher = nil
        subscriptions.endSlices()
        context.budget.endShare()
    }
}

/// A publisher whose match is made in slices.
package enum MatchPublisher: Equatable, BitwiseCopyable {
    /// A client, for its message or its will.
    case connection(Handle)
    /// A feature, for a message of its own.
    case features
    /// An operator who asks for the receivers of a topic.
    case question
    /// The broker, for its own topics.
    case system
}
