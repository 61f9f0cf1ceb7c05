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

    /// Publishes a will, whose message ends `expiry` seconds later; `nil` for one that stays. `session` is
    /// that of its client, if it goes on.
    package mutating func publishWill(
        _ will: Message, of clientID: [UInt8]?, session: UInt32? = nil, expiry: UInt32? = nil
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
            routeWill(will, session)
            return
        }
        let properties = will.properties
        let expiring = Message(
            topic: will.topic, payload: will.payload, qos: will.qos, retain: will.retain,
            expiresAtMs: context.wallClockMs + Int64(expiry) * 1_000,
            forwarded: properties.isEmpty ? nil : ForwardedProperties(whole: properties),
            forwardedSource: properties, pool: pool)
        routeWill(expiring, session)
        expiring.release(in: pool)
    }

    private mutating func routeWill(_ will: Message, _ session: UInt32?) {
        let ownSession = ownSession(ofWill: will, session)
        let (counts, needsCommit) = route(
            will, to: receivers(of: will.topic), mustCommit: false, ownSession: ownSession)
        context.budget.spend(WorkBudget.will * (counts.matched + 1))
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

    /// Takes the will that waits for a session which ends now, as the delay does with it; the caller
    /// publishes it in the group of records that removes the session. `nil` for none.
    mutating func takeDelayedWill(of session: UInt32) -> EndedWill? {
        guard !delayedWills.isEmpty, let will = delayedWills.will(of: session) else { return nil }
        let expiry = terms[session]?.will.expiry
        let isAllowed = mayPublishWill(will, of: session)
        _ = delayedWills.take(session)
        sessions.count(session, -SessionBytes.of(will: will))
        commits.records.willRemoved(session: sessions[session].number)
        guard isAllowed else {
            will.release(in: pool)
            return nil
        }
        return EndedWill(
            will: will, clientID: sessions.identifier(of: session), expiry: expiry)
    }

    /// Publishes the will of a session that has ended.
    mutating func publish(_ ended: EndedWill?) {
        guard let ended else { return }
        publishWill(ended.will, of: ended.clientID, expiry: ended.expiry)
        ended.will.release(in: pool)
    }

    /// Wills whose delay is over that are published in a turn.
    private static var delayedPerTurn: Int { 64 }

    /// Publishes wills whose delay is over. In one group with its removal each, so that it is published
    /// once.
    mutating func publishDelayedWills() {
        guard !delayedWills.isEmpty else { return }
        var left = Self.delayedPerTurn
        while left > 0, !context.budget.isSpent, let due = delayedWills.popDue(now: context.now) {
            left -= 1
            let session = due.session
            sessions.count(session, -SessionBytes.of(will: due.will))
            commits.records.willRemoved(session: sessions[session].number)
            if mayPublishWill(due.will, of: session) {
                publishWill(
                    due.will, of: sessions.identifier(of: session), session: session,
                    expiry: due.expiry)
            }
            if commits.records.hasUncommittedRecords { commit() }
            due.will.release(in: pool)
        }
    }
}

/// The will of a session that has ended before its delay was over.
struct EndedWill {
    let will: Message
    let clientID: [UInt8]
    let expiry: UInt32?
}
