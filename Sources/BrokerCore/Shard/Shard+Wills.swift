import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// Wills: who may publish one, when it is published, and what keeps it from that.
extension Shard {
    /// True when the access rules allow a will at this moment; a denial is counted and reported.
    package mutating func mayPublishWill(_ will: Message, of session: UInt32) -> Bool {
        guard !dropsReserved(will.topic, from: session) else { return false }
        guard let verdict = rights.decide(.publish, will.topic, for: sessions[session]),
            !verdict.isAllowed
        else { return true }
        rights.refuse(.will, sessions[session], will.topic, line: verdict.line, &context)
        return false
    }

    /// Publishes a will, whose message ends `expiry` seconds later; `nil` for one that stays.
    package mutating func publishWill(
        _ will: Message, of clientID: [UInt8]?, expiry: UInt32? = nil
    ) {
        guard context.isWithinLevels(will.topic) else {
            context.counters.limits.add(.maxTopicLevels)
            return
        }
        if context.topicTraces.isActive { traceWill(will, of: clientID) }
        if reportsLifecycle, let clientID {
            context.notices.appendBounded(.willPublished(clientID: clientID, ReportedMessage(will)))
        }
        guard let expiry else {
            routeWill(will)
            return
        }
        let properties = will.properties
        let expiring = Message(
            topic: will.topic, payload: will.payload, qos: will.qos, retain: will.retain,
            expiresAtMs: context.wallClockMs + Int64(expiry) * 1_000,
            forwarded: properties.isEmpty ? nil : ForwardedProperties(whole: properties),
            forwardedSource: properties, pool: pool)
        routeWill(expiring)
        expiring.release(in: pool)
    }

    private mutating func routeWill(_ will: Message) {
        let (counts, needsCommit) = route(
            will, to: receivers(of: will.topic), mustCommit: false)
        context.budget.spend(WorkBudget.will * counts.matched)
        if needsCommit { commit() }
    }

    // MARK: Delayed wills

    /// True when a session's will waits after the end of its connection: it has a delay, and the session
    /// outlives the connection [MQTT-3.1.2-8].
    func delaysWill(of session: UInt32) -> Bool {
        guard session != noIndex, let terms = terms[session], terms.will.delay > 0 else {
            return false
        }
        return sessions[session].isPersistent && expiryMilliseconds(of: session) > 0
    }

    /// Has a will wait for its delay; false when it is published at once. Takes over the reference.
    mutating func delay(_ will: Message, of session: UInt32) -> Bool {
        guard delaysWill(of: session), let terms = terms[session] else { return false }
        delayedWills.add(
            will, of: session, expiry: terms.will.expiry,
            at: context.now.advanced(byMilliseconds: UInt64(terms.will.delay) * 1_000))
        return true
    }

    /// Deletes the will of a session whose client has come back within the delay [MQTT-3.1.3-9].
    mutating func forgetDelayedWill(_ session: UInt32) {
        guard let will = delayedWills.take(session) else { return }
        sessions.count(session, -SessionBytes.of(will: will))
        commits.records.willRemoved(session: sessions[session].number)
        will.release(in: pool)
    }

    /// Has the will of a session that ends published in this turn: the delay ends with the session.
    mutating func endDelayedWill(_ session: UInt32) {
        guard !delayedWills.isEmpty, let will = delayedWills.will(of: session) else { return }
        let isAllowed = mayPublishWill(will, of: session)
        sessions.count(session, -SessionBytes.of(will: will))
        let (number, clientID) = (sessions[session].number, sessions.identifier(of: session))
        guard
            let refused = delayedWills.end(
                session, number: number, clientID: clientID, isAllowed: isAllowed)
        else { return }
        commits.records.willRemoved(session: number)
        refused.release(in: pool)
    }

    /// Publishes wills whose delay is over, or whose session has ended. In one group with its removal each,
    /// so that it is published once.
    mutating func publishDelayedWills() {
        guard !delayedWills.isEmpty else { return }
        while !context.budget.isSpent, let due = delayedWills.popEnded() {
            commits.records.willRemoved(session: due.session)
            publishWill(due.will, of: due.clientID, expiry: due.expiry)
            if commits.records.hasUncommittedRecords { commit() }
            due.will.release(in: pool)
        }
        while !context.budget.isSpent, let due = delayedWills.popDue(now: context.now) {
            let session = due.session
            sessions.count(session, -SessionBytes.of(will: due.will))
            commits.records.willRemoved(session: sessions[session].number)
            if mayPublishWill(due.will, of: session) {
                publishWill(
                    due.will, of: sessions.identifier(of: session), expiry: due.expiry)
            }
            if commits.records.hasUncommittedRecords { commit() }
            due.will.release(in: pool)
        }
    }
}
