import Authorization
import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// What the access rules refused, as it is counted.
package enum AccessRefusal: UInt8, CountLabel {
    /// A PUBLISH; its connection was closed.
    case publish
    /// A filter of a SUBSCRIBE, answered with 0x80.
    case subscribe
    /// A message that a subscription matches and whose topic its client may not read.
    case deliver
    /// A will that was due.
    case will

    package var name: String {
        switch self {
        case .publish: "publish"
        case .subscribe: "subscribe"
        case .deliver: "deliver"
        case .will: "will"
        }
    }
}

/// What the access rules refused, as it is reported.
package struct AccessReport: Sendable {
    /// What happened.
    package enum Event: Hashable, Sendable {
        case publish, subscribe, will
        /// A filter was granted that reaches further than the rights.
        case narrowed
        /// A message was not sent to a subscription that it matches.
        case withheld
        /// A message that had waited for its receiver was dropped.
        case deliver

        /// As it is counted; `nil` for what is no refusal.
        var refusal: AccessRefusal? {
            switch self {
            case .publish: .publish
            case .subscribe: .subscribe
            case .will: .will
            case .narrowed: nil
            case .withheld, .deliver: .deliver
            }
        }
    }

    package var event: Event
    package var clientIdentifier: [UInt8]
    /// A proven user name; `nil` for an anonymous client.
    package var userName: [UInt8]?
    /// The topic name, or the filter of a SUBSCRIBE.
    package var topic: [UInt8]
    /// The rule that decided, by its line; 0 when none fitted.
    package var line: UInt32
}

/// Who may publish and subscribe to what: the rules of the ACL file, asked where something happens.
///
/// Without rules everything is allowed, at the price of one branch. With rules, a PUBLISH is checked when
/// it comes, a will when it fires, and a message for a client when it is routed and, if the rules have
/// changed since, again when it leaves the queue. So new rules take effect at once for all that is
/// subscribed, queued and retained, and nothing has to be walked through when they come.
extension Shard {
    /// Other rules apply from now on; `nil` allows everything.
    package mutating func setAccess(_ rules: AccessRules?) {
        access = rules
        accessGeneration = accessGeneration == .max ? 1 : accessGeneration + 1
        // What is cached was found under the former rules.
        trie.invalidate()
        resumeSystemTopics()
    }

    /// Asks the rules about a session's client.
    func decide(
        _ rules: AccessRules, _ action: AccessAction, _ topic: UnsafeRawBufferPointer,
        for session: UInt32
    ) -> AccessVerdict {
        withSubject(session) { rules.decide(action, topic: topic, for: $0) }
    }

    /// A user name that nothing proved counts for nothing: its client is anonymous.
    private func withSubject<Result>(
        _ session: UInt32, _ body: (AccessSubject) -> Result
    ) -> Result {
        sessions[session].clientIdentifier.withBytes { identifier in
            guard sessions[session].isUserProven else {
                return body(AccessSubject(userName: nil, clientIdentifier: identifier))
            }
            return sessions[session].userName.withBytes { userName in
                body(AccessSubject(userName: userName, clientIdentifier: identifier))
            }
        }
    }

    // MARK: PUBLISH

    /// Whether a connection may publish to a topic; if not, it ends. MQTT 3.1.1 has no other way to
    /// tell its client [MQTT-3.3.5-2].
    @inline(__always)
    mutating func mayPublish(_ handle: Handle, _ topic: UnsafeRawBufferPointer) -> Bool {
        // Without taking hold of the rules, which would be counted.
        guard access != nil else { return true }
        if let permit = connections[handle.index].permit,
            permit.isFor(topic, generation: accessGeneration)
        {
            return true
        }
        return askToPublish(handle, topic)
    }

    @inline(never)
    private mutating func askToPublish(
        _ handle: Handle, _ topic: UnsafeRawBufferPointer
    ) -> Bool {
        guard let rules = access else { return true }
        let session = connections[handle.index].session
        let verdict = decide(rules, .publish, topic, for: session)
        guard verdict.isAllowed else {
            refuse(.publish, session, topic, verdict.line)
            doom(handle, .publishDenied)
            return false
        }
        connections[handle.index].permit?.release(in: pool)
        connections[handle.index].permit = PublishPermit(
            topic, generation: accessGeneration, pool: pool)
        return true
    }

    // MARK: SUBSCRIBE

    /// Whether a filter is granted: some topic that it matches may be read. One that reaches further is
    /// granted too, and gets what it may.
    mutating func maySubscribe(
        _ session: UInt32, _ filter: UnsafeRawBufferPointer, _ refusals: inout SubscribeRefusals
    ) -> Bool {
        guard let rules = access else { return true }
        let filter = SharedSubscriptions.filter(in: filter) ?? filter
        let verdict = withSubject(session) {
            rules.decideSubscription(filter: filter, for: $0, steps: &refusals.ruleSteps)
        }
        switch verdict {
        case .whole: return true
        case .part(let line):
            refuse(
                .narrowed, session, filter, line, isReported: refusals.isReported(.narrowed))
            return true
        case .nothing(let line):
            refuse(
                .subscribe, session, filter, line, isReported: refusals.isReported(.byRules))
            return false
        }
    }

    // MARK: Routing

    /// Sessions that want a topic and may read it, each once; valid until the next call.
    @inline(__always)
    mutating func receivers(
        of topic: UnsafeRawBufferPointer, isCounted: Bool = true
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match> {
        guard access != nil else { return trie.match(topic) }
        return permittedReceivers(of: topic, isCounted: isCounted)
    }

    /// What the rules withhold is cached with the matches, so a topic that is published again costs no
    /// question.
    private mutating func permittedReceivers(
        of topic: UnsafeRawBufferPointer, isCounted: Bool
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match> {
        let result: SubscriptionTrie.Permitted
        switch trie.search(topic) {
        case .cached(let permitted): result = permitted
        case .collected(let matches): result = sortOut(topic, matches, isReported: isCounted)
        }
        if isCounted, result.withheld > 0 {
            counters.accessRefusals.add(.deliver, UInt64(result.withheld))
        }
        return result.matches
    }

    /// Of those that want a topic, the ones that may read it. The others are counted by the caller.
    @inline(never)
    private mutating func sortOut(
        _ topic: UnsafeRawBufferPointer,
        _ matches: UnsafeMutableBufferPointer<SubscriptionTrie.Match>, isReported: Bool
    ) -> SubscriptionTrie.Permitted {
        guard let rules = access else { return trie.keep(topic, permitted: matches.count) }
        var count = 0
        for match in matches {
            let verdict = decide(rules, .subscribe, topic, for: match.session)
            guard verdict.isAllowed else {
                if isReported { report(.withheld, match.session, topic, verdict.line) }
                continue
            }
            matches[count] = match
            count += 1
        }
        return trie.keep(topic, permitted: count)
    }

    /// Whether a client may read a message on its way to it, which is withheld otherwise.
    mutating func mayBeSent(_ topic: UnsafeRawBufferPointer, to session: UInt32) -> Bool {
        guard let rules = access else { return true }
        let verdict = decide(rules, .subscribe, topic, for: session)
        if !verdict.isAllowed { refuse(.withheld, session, topic, verdict.line) }
        return verdict.isAllowed
    }

    /// A message goes past a subscription that it matches: its client may not read the topic.
    mutating func withhold(_ topic: UnsafeRawBufferPointer, from session: UInt32) {
        guard let rules = access else { return }
        let verdict = decide(rules, .subscribe, topic, for: session)
        refuse(.withheld, session, topic, verdict.line)
    }

    /// Whether a client may read messages of a topic: for those that do not come by ``receivers(of:isCounted:)``.
    @inline(__always)
    func mayReceive(_ topic: UnsafeRawBufferPointer, _ session: UInt32) -> Bool {
        guard let rules = access else { return true }
        return decide(rules, .subscribe, topic, for: session).isAllowed
    }

    // MARK: Queues

    /// Whether a message that waited may still be read by its receiver. Asked of the rules only while
    /// the queue holds messages that were put there under others.
    @inline(__always)
    func mayStillReceive(_ topic: UnsafeRawBufferPointer, _ session: UInt32) -> Bool {
        guard access != nil, sessions[session].accessGeneration != accessGeneration else {
            return true
        }
        return mayReceive(topic, session)
    }

    /// Nothing was put into the session's queue under former rules, once it is empty.
    @inline(__always)
    mutating func noteQueueChecked(_ session: UInt32) {
        guard sessions[session].accessGeneration != accessGeneration,
            sessions[session].outbound.isEmpty
        else { return }
        sessions[session].accessGeneration = accessGeneration
    }

    /// A message that waited is given up: its receiver lost the right to read it.
    mutating func revoke(_ session: UInt32, _ topic: UnsafeRawBufferPointer, _ position: UInt64) {
        finished(session, position)
        drop(session, .notAllowed)
        guard let rules = access else { return }
        let verdict = decide(rules, .subscribe, topic, for: session)
        refuse(.deliver, session, topic, verdict.line)
    }

    /// Gives up what was in flight to a client that came back and may not read it any more.
    mutating func revokeInFlight(_ session: UInt32) {
        guard access != nil, sessions[session].accessGeneration != accessGeneration else { return }
        var revoked: [OutboundQueue.Item] = []
        let queue = sessions[session].outbound
        queue.forEachInFlight { resend in
            guard case .publish(let item) = resend,
                !mayStillReceive(item.message.topic, session)
            else { return }
            revoked.append(item)
        }
        for item in revoked {
            revoke(session, item.message.topic, item.position)
            totals.inFlight -= 1
            sessions[session].outbound.abandon(item, pool: pool)
        }
    }

    // MARK: Wills

    /// Whether a will may be published by its session's client now.
    mutating func mayPublishWill(_ will: Message, of session: UInt32) -> Bool {
        guard let rules = access else { return true }
        let verdict = decide(rules, .publish, will.topic, for: session)
        guard verdict.isAllowed else {
            refuse(.will, session, will.topic, verdict.line)
            return false
        }
        return true
    }

    /// The same for a will that a former run of the broker left. Whose it was is known of persistent
    /// sessions; a will of nobody is as one that no rule allows.
    mutating func mayPublishRestored(_ will: Message, of session: UInt32?) -> Bool {
        if let session { return mayPublishWill(will, of: session) }
        guard access != nil else { return true }
        counters.accessRefusals.add(.will)
        note(
            .access(
                AccessReport(
                    event: .will, clientIdentifier: [], topic: [UInt8](will.topic), line: 0)))
        return false
    }

    // MARK: Counting and reporting

    /// Counts a refusal, and leaves word of it; the log says each kind once.
    private mutating func refuse(
        _ event: AccessReport.Event, _ session: UInt32, _ topic: UnsafeRawBufferPointer,
        _ line: UInt32, isReported: Bool = true
    ) {
        if let refusal = event.refusal { counters.accessRefusals.add(refusal) }
        if isReported { report(event, session, topic, line) }
    }

    /// Messages times receivers that one turn leaves word of: routing is not to cost more than that,
    /// where many subscriptions reach further than their clients' rights.
    private static var deliveriesReported: UInt8 { 8 }

    private mutating func report(
        _ event: AccessReport.Event, _ session: UInt32, _ topic: UnsafeRawBufferPointer,
        _ line: UInt32
    ) {
        if event == .withheld || event == .deliver {
            guard deliveriesReported < Self.deliveriesReported else { return }
            deliveriesReported += 1
        }
        note(
            .access(
                AccessReport(
                    event: event, clientIdentifier: sessions[session].clientIdentifier.array,
                    userName: sessions[session].isUserProven
                        ? sessions[session].userName.array : nil,
                    topic: [UInt8](topic), line: line)))
    }
}

/// The last topic that a connection was allowed to publish to: publishers tend to stay with one.
///
/// It holds the topic itself, because a hash could be made to collide. The holder calls
/// ``release(in:)`` once.
struct PublishPermit: BitwiseCopyable {
    /// The generation of the rules in four bytes, and then the topic.
    private let bytes: SharedBytes

    init(_ topic: UnsafeRawBufferPointer, generation: UInt32, pool: BytePool) {
        bytes = SharedBytes(count: 4 + topic.count, pool: pool)
        bytes.bytes.storeBytes(of: generation, as: UInt32.self)
        if let base = topic.baseAddress {
            (bytes.bytes + 4).copyMemory(from: base, byteCount: topic.count)
        }
    }

    func isFor(_ topic: UnsafeRawBufferPointer, generation: UInt32) -> Bool {
        guard bytes.bytes.load(as: UInt32.self) == generation else { return false }
        return UnsafeRawBufferPointer(start: bytes.bytes + 4, count: bytes.count - 4)
            .elementsAreEqual(to: topic)
    }

    func release(in pool: BytePool) { bytes.release(in: pool) }
}
