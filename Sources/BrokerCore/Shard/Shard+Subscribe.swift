import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// New subscriptions, and the retained messages for them.
extension Shard {
    /// Adds one subscription; returns the code of its SUBACK. `retained` says whether it gets retained
    /// messages [MQTT-3.3.1-9] [MQTT-3.3.1-10] [MQTT-3.3.1-11].
    package mutating func addSubscription(
        _ session: UInt32, _ filter: UnsafeRawBufferPointer, _ grant: SubscriptionGrant,
        retained handling: SubscriptionOptions.RetainHandling,
        _ refusals: inout SubscribeRefusals
    ) -> ReasonCode {
        guard refusals.admitsNext() else {
            return refuseFilter(session, .subscribeFilters, .quotaExceeded, &refusals)
        }
        guard context.isWithinLevels(filter) else {
            return refuseFilter(session, .maxTopicLevels, .topicFilterInvalid, &refusals)
        }
        let isShared = SharedSubscriptions.isShared(filter)
        let plainFilter = isShared ? SharedSubscriptions.filter(in: filter) : filter
        guard let plainFilter else {
            return refuseFilter(session, .sharedFilter, .topicFilterInvalid, &refusals)
        }
        guard maySubscribe(session, plainFilter, &refusals) else { return .notAuthorized }
        prepareSystemTopics(for: plainFilter)
        let bytesBefore = sessions[session].subscriptions.byteCount
        let subscribed = subscriptions.add(
            session, &sessions[session].subscriptions, filter: filter, grant: grant,
            isOnline: true)
        if subscribed == .added {
            if let limit = limitExceeded(bySubscriptionsOf: session, before: bytesBefore) {
                _ = subscriptions.remove(session, &sessions[session].subscriptions, filter: filter)
                return refuseFilter(session, limit, .quotaExceeded, &refusals)
            }
            sessions.countSubscriptions(of: session, before: bytesBefore)
        }
        sessions[session].note(grant)
        let sendsRetained =
            handling == .atEverySubscribe || handling == .atNewSubscription && subscribed == .added
        // A shared subscription gets none, as they would always go to the latest member. Walks
        // begin after the subscription is in place, so no message published in between is missed.
        if !isShared, sendsRetained, !retained.isEmpty { walks.add(session, filter, grant.qos) }
        return ReasonCode(granted: grant.qos)
    }

    private mutating func refuseFilter(
        _ session: UInt32, _ limit: Limit, _ code: ReasonCode, _ refusals: inout SubscribeRefusals
    ) -> ReasonCode {
        context.counters.limits.add(limit)
        if refusals.isReported(.atLimit) {
            context.notices.appendBounded(
                .subscriptionRefused(
                    clientID: sessions.identifier(of: session), limit))
        }
        return code
    }

    // MARK: Retained messages

    /// Drops the retained messages due to a session that has ended.
    package mutating func cancelRetained(_ session: UInt32) {
        if let walk = walks.cancel(session) { retained.end(walk.cursor) }
    }

    /// Resumes retained messages for a session that has room again.
    @inline(__always)
    package mutating func resumeRetained(_ session: UInt32) {
        if walks.isStalled(session) { resumeStalled(session) }
    }

    @inline(never)
    private mutating func resumeStalled(_ session: UInt32) {
        if canTakeRetained(session) { walks.resume(session) }
    }

    private func canTakeRetained(_ session: UInt32) -> Bool {
        guard let target = sessions[session].connection,
            // A persistent session's copies must be stored.
            !commits.isBacklogFull || !sessions[session].isPersistent
        else { return false }
        return connections[target].outlet.count < context.limits.outputBytes
            && sessions[session].outbound.waiting < RetainedWalks.mostWaiting
    }

    /// Sends one slice of retained messages to new subscriptions.
    package mutating func runRetainedWalks() {
        guard walks.hasWork else { return }
        for session in walks.beginTurn() { resumeRetained(session) }
        var steps = RetainedWalks.stepsPerTurn
        var served = 0
        let waiting = walks.turnCount
        while served < waiting, steps > 0 {
            let session = walks.session(inTurn: served)
            let taken = walks.takeJob(inTurn: served)
            served += 1
            guard var job = taken else { continue }
            let slice = run(&job, session, &steps)
            walks.endSlice(session, job, slice)
        }
        walks.endTurn(served: served)
        if rights.hasWork { chargeRights() }
    }

    private mutating func run(
        _ job: inout RetainedJob, _ session: UInt32, _ steps: inout Int
    ) -> RetainedWalks.Slice {
        while true {
            guard canTakeRetained(session) else { return .stalled }
            guard var walk = job.takeWalk() else {
                guard let (filter, qos) = walks.nextRequest(of: &job) else { return .finished }
                steps -= RetainedWalks.stepsPerRequest
                job.putBack(
                    RetainedJob.Walk(filter: filter, cursor: retained.cursor(filter), qos: qos))
                continue
            }
            switch retained.next(&walk.cursor, steps: &steps) {
            case .message(let message):
                let before = rights.steps
                deliverRetained(message, session, walk.qos)
                steps -= max(0, rights.steps - before) / RetainedWalks.ruleStepsPerStep
                job.putBack(walk)
            case .paused:
                job.putBack(walk)
                return .paused
            case .finished:
                retained.end(walk.cursor)
            }
        }
    }

    /// Sends a retained message with RETAIN 1 [MQTT-3.3.1-8], at the lower QoS.
    private mutating func deliverRetained(_ message: Message, _ session: UInt32, _ asked: QoS) {
        if let verdict = rights.decide(.subscribe, message.topic, for: sessions[session]),
            !verdict.isAllowed
        {
            rights.refuse(
                .withheld, sessions[session], message.topic, line: verdict.line, &context)
            return
        }
        guard !message.isExpired(atMs: context.wallClockMs) else { return }
        if SystemTopic.isReserved(message.topic) {
            sendSystemMessage(message, to: session, retain: true)
            return
        }
        let qos = min(message.qos, asked)
        let isStored = qos != .atMostOnce && sessions[session].isPersistent
        // The commit of its publication may be incomplete.
        var delivery = RoutedMessage(
            message,
            ticket: isStored ? commits.nextTicket : commits.uncommittedRetainedTicket,
            retain: true)
        var counts = PublishCounts()
        deliver(&delivery, to: session, qos: qos, &counts)
        if isStored { commit() }
    }
}
