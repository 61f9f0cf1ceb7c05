import Authorization
import BrokerAPI
import MQTTCore
import Structures

/// Access checks that need more than one part.
extension Shard {
    /// Puts other access rules into force; `nil` allows everything.
    public mutating func setAccess(_ rules: AccessRules?) {
        rights.replace(rules)
        // Results were cached under the former rules.
        subscriptions.forgetPermissions()
        system.resume()
    }

    /// Puts what the client's login allows into force for its session. What waits for a client that
    /// comes with another allowance is checked again before it is sent.
    package mutating func setAllowance(
        _ allowance: TopicAllowance?, of session: UInt32, isNew: Bool
    ) {
        let former = rights.allowance(of: sessions[session])
        switch (former, allowance) {
        case (nil, nil): return
        case (let former?, let allowance?) where allowance.isEquivalent(to: former): return
        default: break
        }
        sessions.count(session, SessionBytes.of(allowance) - SessionBytes.of(former))
        rights.setAllowance(allowance, of: &sessions[session])
        guard !isNew else { return }
        sessions[session].accessGeneration = 0
        // Matches were cached under the former allowance.
        if sessions[session].subscriptions.weight > 0 {
            subscriptions.forgetPermissions(of: session)
        }
    }

    /// Forgets what the login of a session allowed that is about to be removed.
    package mutating func dropAllowance(of session: UInt32) {
        guard let former = rights.allowance(of: sessions[session]) else { return }
        sessions.count(session, -SessionBytes.of(former))
        rights.setAllowance(nil, of: &sessions[session])
    }

    /// False when the client's login does not allow its will, which then is not kept: so it is not
    /// published after a restart either, when the login is not known any more.
    package mutating func mayKeepWill(_ topic: UnsafeRawBufferPointer, _ session: UInt32) -> Bool {
        guard !rights.doesLoginAllowPublish(topic, sessions[session]) else { return true }
        rights.refuse(
            .will, sessions[session], topic, line: AccessVerdict.loginLine, &context)
        return false
    }

    /// Charges the turn for the rules that were looked at since the last call.
    @inline(never)
    package mutating func chargeRights() {
        context.budget.spend(WorkBudget.ruleStep * rights.takeWork())
    }

    /// True when a connection may publish to a topic; otherwise one of 3.1.1 is closed [MQTT-3.3.5-2].
    @inline(__always)
    package mutating func mayPublish(_ handle: Handle, _ topic: UnsafeRawBufferPointer) -> Bool {
        guard rights.areRestricted else { return true }
        if let permit = connections[handle].permit,
            permit.isFor(topic, generation: rights.generation)
        {
            return true
        }
        return askToPublish(handle, topic)
    }

    @inline(never)
    private mutating func askToPublish(
        _ handle: Handle, _ topic: UnsafeRawBufferPointer
    ) -> Bool {
        let session = connections[handle].session
        guard let verdict = rights.decide(.publish, topic, for: sessions[session]) else {
            return true
        }
        guard verdict.isAllowed else {
            rights.refuse(.publish, sessions[session], topic, line: verdict.line, &context)
            // A client of 5.0 is answered by a code, and stays.
            if !connections[handle].outlet.speaks5 { end(handle, .publishDenied) }
            return false
        }
        connections[handle].permit?.release(in: pool)
        connections[handle].permit = nil
        guard topic.count <= PublishPermit.longestTopic else { return true }
        connections[handle].permit = PublishPermit(
            topic, generation: rights.generation, pool: pool)
        return true
    }

    /// True when a filter is granted; `filter` is the plain part of a shared one.
    package mutating func maySubscribe(
        _ session: UInt32, _ filter: UnsafeRawBufferPointer, _ refusals: inout SubscribeRefusals
    ) -> Bool {
        switch rights.decideSubscription(
            filter, for: sessions[session], steps: &refusals.ruleSteps)
        {
        case nil, .whole?: return true
        case .part(let line)?:
            rights.refuse(
                .narrowed, sessions[session], filter, line: line,
                isReported: refusals.isReported(.narrowed), &context)
            return true
        case .nothing(let line)?:
            rights.refuse(
                .subscribe, sessions[session], filter, line: line,
                isReported: refusals.isReported(.byRules), &context)
            return false
        }
    }

    /// Notes an empty queue, which holds no message from before the present rules.
    @inline(__always)
    package mutating func noteQueueChecked(_ session: UInt32) {
        guard sessions[session].accessGeneration != rights.generation,
            sessions[session].outbound.isEmpty
        else { return }
        sessions[session].accessGeneration = rights.generation
    }

    /// Drops a queued message that its receiver may no longer read.
    package mutating func revoke(
        _ session: UInt32, _ topic: UnsafeRawBufferPointer, _ position: UInt64
    ) {
        finished(session, position, .dropped(.notAllowed))
        drop(session, .notAllowed)
        rights.refuseDelivery(.deliver, sessions[session], topic, &context)
    }

    /// Drops messages in flight that a returning client may no longer read.
    package mutating func revokeInFlight(_ session: UInt32) {
        guard rights.mustRecheck(sessions[session]) else { return }
        var revoked: [OutboundQueue.Item] = []
        sessions[session].outbound.forEachInFlight { resend in
            guard case .publish(let item) = resend,
                !rights.mayReceive(item.message.topic, sessions[session])
            else { return }
            revoked.append(item)
        }
        for item in revoked {
            revoke(session, item.message.topic, item.position)
            sessions.totals.finished()
            sessions[session].outbound.abandon(item, pool: context.pool)
        }
    }
}
