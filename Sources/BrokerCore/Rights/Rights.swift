import Authorization
import BrokerAPI
import Structures

/// The access rules in force and the topics that logins allow, asked at the moment of each action. A
/// client may do what both allow.
///
/// Without rules everything is allowed, at the cost of one branch. A PUBLISH is checked on arrival,
/// a will when it fires, and an outbound message when it is routed; if the rules have changed
/// since, the message is checked again when it leaves the queue. So new rules apply at once to
/// existing subscriptions, queues and retained messages, without walking through them.
package struct Rights {
    /// Withheld deliveries reported per turn. Bounds the cost of routing when many subscriptions
    /// match topics that their clients may not read.
    private static var deliveriesReportedPerTurn: UInt8 { 8 }

    private var rules: AccessRules?
    private var allowances = SessionAllowances()
    /// Number of rule sets so far; never 0.
    package private(set) var generation: UInt32 = 1
    private var deliveriesReported: UInt8 = 0
    /// What the rules said about the topic that was asked last, to publish and to receive.
    private var publishMemo = RuleMemo()
    private var receiveMemo = RuleMemo()
    /// The same for the topic whose match is made in slices, between which others are asked about.
    private var sliceMemo = RuleMemo()
    /// Steps of questions since ``takeWork()``.
    private var work = 0

    package init(_ rules: AccessRules?) { self.rules = rules }

    /// True with rules, or while a login narrows what a client may do. Avoids a retain of the rules,
    /// which would cost more.
    @inline(__always)
    package var areRestricted: Bool { rules != nil || !allowances.isEmpty }

    /// The same for one session.
    @inline(__always)
    private func areRestricted(_ session: Session) -> Bool {
        rules != nil || session.allowance != noIndex
    }

    /// Puts other rules into force; `nil` allows everything.
    package mutating func replace(_ rules: AccessRules?) {
        self.rules = rules
        publishMemo.removeAll()
        receiveMemo.removeAll()
        sliceMemo.removeAll()
        generation = generation == .max ? 1 : generation + 1
    }

    /// Resets the bound of reported deliveries.
    package mutating func endTurn() { deliveriesReported = 0 }

    // MARK: Cost

    /// True when questions have cost something since ``takeWork()``.
    @inline(__always)
    package var hasWork: Bool { work != 0 }

    /// The rules and filters of logins that were looked at since the last call, for ``WorkBudget``; long
    /// topics count as several.
    package mutating func takeWork() -> Int {
        defer { work = 0 }
        return work
    }

    /// Steps of the questions since ``takeWork()``, for a caller that stops at a bound.
    @inline(__always)
    package var steps: Int { work }

    // MARK: Questions

    /// The decision of the rules and of the session's login; `nil` when both say nothing.
    package mutating func decide(
        _ action: AccessAction, _ topic: UnsafeRawBufferPointer, for session: Session
    ) -> AccessVerdict? {
        guard areRestricted(session) else { return nil }
        switch action {
        case .publish:
            return ask(.publish, topic, session, rules, allowances, &publishMemo, &work)
        case .subscribe:
            return ask(.subscribe, topic, session, rules, allowances, &receiveMemo, &work)
        }
    }

    /// ``decide(_:_:for:)`` whether a client may read a topic whose match is made in slices.
    package mutating func decideInSlice(
        _ topic: UnsafeRawBufferPointer, for session: Session
    ) -> AccessVerdict? {
        guard areRestricted(session) else { return nil }
        return ask(.subscribe, topic, session, rules, allowances, &sliceMemo, &work)
    }

    /// False when the session's login does not allow to publish to a topic, whatever the rules say.
    package mutating func doesLoginAllowPublish(
        _ topic: UnsafeRawBufferPointer, _ session: Session
    ) -> Bool {
        guard let allowance = allowances[session.allowance] else { return true }
        return Self.withSubject(session) {
            allowance.allows(.publish, topic: topic, for: $0, steps: &work)
        }
    }

    /// True when the session's client may read messages of a topic.
    @inline(__always)
    package mutating func mayReceive(
        _ topic: UnsafeRawBufferPointer, _ session: Session
    ) -> Bool {
        guard areRestricted(session) else { return true }
        return decide(.subscribe, topic, for: session)?.isAllowed ?? true
    }

    /// True when the client may still read a queued message. Asks the rules only while the queue
    /// may hold messages that were queued under other rules.
    @inline(__always)
    package mutating func mayStillReceive(
        _ topic: UnsafeRawBufferPointer, _ session: Session
    ) -> Bool {
        guard areRestricted(session), session.accessGeneration != generation else { return true }
        return mayReceive(topic, session)
    }

    /// True when the queue may hold messages that were queued under other rules.
    package func mustRecheck(_ session: Session) -> Bool {
        areRestricted(session) && session.accessGeneration != generation
    }

    /// Decides about a filter: it is granted if the client may read any of its topics, and then
    /// delivers only those. `nil` when neither rules nor the session's login say anything.
    package func decideSubscription(
        _ filter: UnsafeRawBufferPointer, for session: Session, steps: inout Int
    ) -> SubscriptionVerdict? {
        guard areRestricted(session) else { return nil }
        return Self.withSubject(session) { subject in
            let allowance = allowances[session.allowance]
            let verdict =
                allowance?.overrulesAccessRules == true
                ? nil : rules?.decideSubscription(filter: filter, for: subject, steps: &steps)
            if case .nothing? = verdict { return verdict }
            guard let allowance else { return verdict }
            switch allowance.extent(ofFilter: filter, for: subject, steps: &steps) {
            case .whole: return verdict
            case .part: return .part(line: AccessVerdict.loginLine)
            case .nothing: return .nothing(line: AccessVerdict.loginLine)
            }
        }
    }

    // MARK: Logins

    /// The topics that the login of a session's client allows; `nil` when it says nothing.
    package func allowance(of session: Session) -> TopicAllowance? { allowances[session.allowance] }

    /// Replaces what the login of a session's client allows.
    package mutating func setAllowance(_ allowance: TopicAllowance?, of session: inout Session) {
        if session.allowance != noIndex { allowances.remove(session.allowance) }
        session.allowance = allowance.map { allowances.add($0) } ?? noIndex
    }

    /// An unproven user name is ignored: its client is anonymous.
    fileprivate static func withSubject<Result>(
        _ session: Session, _ body: (AccessSubject) -> Result
    ) -> Result {
        let (userName, isProven) = (session.userName, session.isUserProven)
        return session.clientID.withBytes { identifier in
            guard isProven else {
                return body(AccessSubject(userName: nil, clientID: identifier))
            }
            return userName.withBytes { userName in
                body(AccessSubject(userName: userName, clientID: identifier))
            }
        }
    }

    // MARK: Refusals

    /// Counts and reports a denial; the log shows each kind once.
    package mutating func refuse(
        _ event: AccessReport.Event, _ session: Session,
        _ topic: UnsafeRawBufferPointer, line: UInt32, isReported: Bool = true,
        _ context: inout ShardContext
    ) {
        if let refusal = event.refusal { context.counters.accessRefusals.add(refusal) }
        if isReported { report(event, session, topic, line: line, &context.notices) }
    }

    /// Asks the rules again for the line that withholds a topic; counts and reports it.
    package mutating func refuseDelivery(
        _ event: AccessReport.Event, _ session: Session,
        _ topic: UnsafeRawBufferPointer, _ context: inout ShardContext
    ) {
        guard let verdict = decide(.subscribe, topic, for: session) else { return }
        refuse(event, session, topic, line: verdict.line, &context)
    }

    package mutating func report(
        _ event: AccessReport.Event, _ session: Session,
        _ topic: UnsafeRawBufferPointer, line: UInt32, _ notices: inout Notices
    ) {
        if event == .withheld || event == .deliver {
            guard deliveriesReported < Self.deliveriesReportedPerTurn else { return }
            deliveriesReported += 1
        }
        notices.appendBounded(
            .access(
                AccessReport(
                    event: event, clientID: session.clientID.array,
                    userName: session.provenUserName, topic: [UInt8](topic), line: line)))
    }
}

/// Asks the rules and what the session's login allows.
private func ask(
    _ action: AccessAction, _ topic: UnsafeRawBufferPointer, _ session: Session,
    _ rules: AccessRules?, _ allowances: SessionAllowances, _ memo: inout RuleMemo,
    _ steps: inout Int
) -> AccessVerdict? {
    Rights.withSubject(session) { subject in
        let allowance = allowances[session.allowance]
        let verdict =
            allowance?.overrulesAccessRules == true
            ? nil
            : rules?.decide(action, topic: topic, for: subject, memo: &memo, steps: &steps)
        guard verdict?.isAllowed ?? true, let allowance,
            !allowance.allows(action, topic: topic, for: subject, steps: &steps)
        else { return verdict }
        return .deniedByLogin
    }
}
