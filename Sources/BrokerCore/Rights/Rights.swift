import Authorization
import BrokerAPI
import Structures

/// The rules of the ACL file, asked where something happens: which client may publish and subscribe to what.
///
/// Without rules everything is allowed, at the price of one branch. With rules, a PUBLISH is checked when
/// it comes, a will when it fires, and a message for a client when it is routed and, if the rules have
/// changed since, again when it leaves the queue. So new rules take effect at once for all that is
/// subscribed, queued and retained, and nothing has to be walked through when they come.
struct Rights {
    /// Messages times receivers that one turn reports: routing is not to cost more than that where many
    /// subscriptions reach further than their clients' rights.
    private static var deliveriesReportedPerTurn: UInt8 { 8 }

    private var rules: AccessRules?
    /// Counts the rules that there have been; never 0.
    private(set) var generation: UInt32 = 1
    private var deliveriesReported: UInt8 = 0

    init(_ rules: AccessRules?) { self.rules = rules }

    /// Whether there are any rules, without taking hold of them, which would be counted.
    @inline(__always)
    var areRestricted: Bool { rules != nil }

    /// Other rules apply from now on; `nil` allows everything.
    mutating func replace(_ rules: AccessRules?) {
        self.rules = rules
        generation = generation == .max ? 1 : generation + 1
    }

    /// Reports of withheld messages are bounded in each turn.
    mutating func endTurn() { deliveriesReported = 0 }

    // MARK: Questions

    /// `nil` without rules.
    func decide(
        _ action: AccessAction, _ topic: UnsafeRawBufferPointer, for session: Session
    ) -> AccessVerdict? {
        guard let rules else { return nil }
        return Self.withSubject(session) { rules.decide(action, topic: topic, for: $0) }
    }

    /// Whether the session's client may read messages of a topic.
    @inline(__always)
    func mayReceive(_ topic: UnsafeRawBufferPointer, _ session: Session) -> Bool {
        guard rules != nil else { return true }
        return decide(.subscribe, topic, for: session)?.isAllowed ?? true
    }

    /// Whether the client may still read a queued message. The rules are asked only while the queue holds
    /// messages that were put there under other ones.
    @inline(__always)
    func mayStillReceive(_ topic: UnsafeRawBufferPointer, _ session: Session) -> Bool {
        guard rules != nil, session.accessGeneration != generation else { return true }
        return mayReceive(topic, session)
    }

    /// Whether the queue may hold messages that were put there under other rules.
    func mustRecheck(_ session: Session) -> Bool {
        rules != nil && session.accessGeneration != generation
    }

    /// Whether a filter is granted: some topic that it matches may be read. One that reaches further is
    /// granted too, and gets the topics that are allowed. `nil` without rules.
    func decideSubscription(
        _ filter: UnsafeRawBufferPointer, for session: Session, steps: inout Int
    ) -> SubscriptionVerdict? {
        guard let rules else { return nil }
        return Self.withSubject(session) {
            rules.decideSubscription(filter: filter, for: $0, steps: &steps)
        }
    }

    /// A user name that nothing proved counts for nothing: its client is anonymous.
    private static func withSubject<Result>(
        _ session: Session, _ body: (AccessSubject) -> Result
    ) -> Result {
        let (userName, isProven) = (session.userName, session.isUserProven)
        return session.clientIdentifier.withBytes { identifier in
            guard isProven else {
                return body(AccessSubject(userName: nil, clientIdentifier: identifier))
            }
            return userName.withBytes { userName in
                body(AccessSubject(userName: userName, clientIdentifier: identifier))
            }
        }
    }

    // MARK: Refusals

    /// Counts a refusal and reports it; the log says each kind once.
    mutating func refuse(
        _ event: AccessReport.Event, _ session: Session,
        _ topic: UnsafeRawBufferPointer, line: UInt32, isReported: Bool = true,
        _ context: inout ShardContext
    ) {
        if let refusal = event.refusal { context.counters.accessRefusals.add(refusal) }
        if isReported { report(event, session, topic, line: line, &context.notices) }
    }

    /// Asks the rules again for the line that withholds a topic, counts and reports it.
    mutating func refuseDelivery(
        _ event: AccessReport.Event, _ session: Session,
        _ topic: UnsafeRawBufferPointer, _ context: inout ShardContext
    ) {
        guard let verdict = decide(.subscribe, topic, for: session) else { return }
        refuse(event, session, topic, line: verdict.line, &context)
    }

    mutating func report(
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
                    event: event, clientIdentifier: session.clientIdentifier.array,
                    userName: session.provenUserName, topic: [UInt8](topic), line: line)))
    }
}
