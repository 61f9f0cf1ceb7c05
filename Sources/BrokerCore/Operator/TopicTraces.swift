import Authorization
import BrokerAPI
import MQTTCodec
import MQTTCore

/// The topic filters of live traces, and what became of messages that they match.
///
/// Without a trace it costs a message one look at ``isActive``. Text is made only for traces that have
/// room for a further line; for others it is counted what they miss.
package struct TopicTraces {
    /// What became of a message, for each trace that follows it.
    package struct Event: Sendable {
        package var traces: [UInt32]
        package var clientID: [UInt8]?
        package var text: String
        package var payload: [UInt8]
    }

    private struct Trace {
        let id: UInt32
        let filter: [UInt8]
        /// Lines that it takes in this turn.
        var room = 0
        var leftOut = 0
    }

    private var entries: [Trace] = []
    package private(set) var isActive = false
    private var events: [Event] = []
    /// The topic that was looked at last, and the places in `entries` of the traces that follow it.
    private var topic: [UInt8] = []
    private var places: [Int]?

    package var count: Int { entries.count }

    /// Follows messages for a trace.
    package mutating func add(_ trace: UInt32, filter: [UInt8]) {
        entries.append(Trace(id: trace, filter: filter))
        isActive = true
        places = nil
    }

    package mutating func remove(_ trace: UInt32) {
        entries.removeAll { $0.id == trace }
        isActive = !entries.isEmpty
        places = nil
    }

    /// Sets how many lines each trace takes in this turn.
    package mutating func setRoom(_ room: (UInt32) -> Int) {
        for place in entries.indices { entries[place].room = room(entries[place].id) }
    }

    /// True when any trace follows messages on a topic. The next lines are about this topic.
    package mutating func follow(_ topic: UnsafeRawBufferPointer) -> Bool {
        if let places, self.topic.elementsEqual(topic) { return !places.isEmpty }
        self.topic.removeAll(keepingCapacity: true)
        self.topic.append(contentsOf: topic)
        let found = entries.indices.filter { place in
            entries[place].filter.withUnsafeBytes {
                FilterMatch.matches(filter: $0, topic: topic)
            }
        }
        places = found
        return !found.isEmpty
    }

    /// The traces that take the next line about the topic; the others miss it.
    package mutating func nextLine() -> [UInt32] {
        var traces: [UInt32] = []
        for place in places ?? [] {
            if entries[place].room > 0 {
                entries[place].room -= 1
                traces.append(entries[place].id)
            } else {
                entries[place].leftOut += 1
            }
        }
        return traces
    }

    /// Has all traces that follow the topic miss so many lines.
    package mutating func leaveOut(_ count: Int) {
        for place in places ?? [] { entries[place].leftOut += count }
    }

    package mutating func append(_ event: Event) { events.append(event) }

    /// The events since the last call, and for each trace how many it has missed.
    package mutating func take() -> (events: [Event], leftOut: [(trace: UInt32, count: Int)]) {
        let missing = entries.filter { $0.leftOut > 0 }.map { (trace: $0.id, count: $0.leftOut) }
        for place in entries.indices { entries[place].leftOut = 0 }
        defer { events.removeAll(keepingCapacity: isActive) }
        return (events, missing)
    }
}

extension Shard {
    /// Has a trace follow messages on the topics that a filter matches.
    public mutating func traceTopics(_ filter: String, for trace: UInt32) {
        context.topicTraces.add(trace, filter: Array(filter.utf8))
    }

    public mutating func endTopicTrace(_ trace: UInt32) { context.topicTraces.remove(trace) }

    /// Sets how many lines each trace of a topic takes in this turn.
    public mutating func setTraceRoom(_ room: (_ trace: UInt32) -> Int) {
        if context.topicTraces.isActive { context.topicTraces.setRoom(room) }
    }

    /// Charges the turn for looking at bytes of traced connections, of which so many packets became text
    /// and so many did not.
    public mutating func chargeTrace(bytes: Int, told: Int, untold: Int) {
        context.budget.spend(
            bytes >> 6 + told * WorkBudget.traceLine + untold * WorkBudget.traceLook)
    }

    /// Calls `body` with what became of traced messages since the last call; returns how many lines
    /// each trace has missed.
    public mutating func takeTopicEvents(
        _ body: (_ traces: [UInt32], _ client: [UInt8]?, _ text: String, _ payload: [UInt8]) -> Void
    ) -> [(trace: UInt32, count: Int)] {
        guard context.topicTraces.isActive else { return [] }
        let (events, leftOut) = context.topicTraces.take()
        for event in events {
            body(event.traces, event.clientID, event.text, event.payload)
        }
        return leftOut
    }

    /// True when traces follow a topic, as the turn is charged for.
    private mutating func isTraced(_ topic: UnsafeRawBufferPointer) -> Bool {
        context.budget.spend(WorkBudget.traceLook * context.topicTraces.count)
        return context.topicTraces.follow(topic)
    }

    /// Tells traces of a PUBLISH; `publisher` is `nil` for one that came over HTTP.
    @inline(never)
    package mutating func tracePublish(
        _ topic: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, qos: QoS,
        retain: Bool, from publisher: UInt32?
    ) {
        guard isTraced(topic), let traces = tracesOfNextLine() else { return }
        tell(
            traces, "publishes", topic, payload, qos: qos, retain: retain,
            publisher == nil ? ", over HTTP" : "",
            of: publisher.map { sessions.identifier(of: $0) })
    }

    /// Tells traces of a will; `clientID` is `nil` after a start for a client without a session.
    @inline(never)
    package mutating func traceWill(_ will: Message, of clientID: [UInt8]?) {
        guard isTraced(will.topic), let traces = tracesOfNextLine() else { return }
        tell(
            traces, "leaves its will on", will.topic, will.payload, qos: will.qos,
            retain: will.retain, of: clientID)
    }

    private mutating func tell(
        _ traces: [UInt32], _ verb: String, _ topic: UnsafeRawBufferPointer,
        _ payload: UnsafeRawBufferPointer, qos: QoS, retain: Bool, _ way: String = "",
        of clientID: [UInt8]?
    ) {
        context.topicTraces.append(
            TopicTraces.Event(
                traces: traces, clientID: clientID,
                text: "\(verb) \(String(decoding: topic, as: UTF8.self)), "
                    + "QoS \(qos.rawValue), \(payload.count) bytes" + (retain ? ", RETAIN" : "")
                    + way,
                payload: [UInt8](payload.prefix(TraceRequest.mostPayloadBytes))))
    }

    /// Tells traces what became of a message for each receiver, after it was delivered.
    @inline(never)
    package mutating func traceDeliveries(
        _ message: Message, to matches: UnsafeBufferPointer<SubscriptionTrie.Match>,
        _ choices: UnsafeBufferPointer<SharedSubscriptions.Choice>?, needsCommit: Bool
    ) {
        guard isTraced(message.topic) else { return }
        var left = matches.count + (choices?.count ?? 0)
        guard let traces = tracesOfNextLine() else {
            context.topicTraces.leaveOut(left)
            return
        }
        let topic = String(decoding: message.topic, as: UTF8.self)
        context.topicTraces.append(
            TopicTraces.Event(
                traces: traces, clientID: nil,
                text: left == 0
                    ? "nobody subscribes to \(topic)"
                    : "\(left) receive \(topic)" + (needsCommit ? ", after its commit" : ""),
                payload: []))
        for match in matches {
            left -= 1
            guard trace(message, to: match.session, qos: min(message.qos, match.qos)) else {
                context.topicTraces.leaveOut(left)
                return
            }
        }
        for choice in choices ?? UnsafeBufferPointer(start: nil, count: 0) {
            left -= 1
            let qos = min(message.qos, choice.qos)
            guard trace(message, to: choice.session, qos: qos, group: choice.group) else {
                context.topicTraces.leaveOut(left)
                return
            }
        }
    }

    /// The traces that take a line about the topic that was followed last; `nil` when none has room for
    /// it, and then its text is not made.
    private mutating func tracesOfNextLine() -> [UInt32]? {
        let traces = context.topicTraces.nextLine()
        context.budget.spend(WorkBudget.traceLine * traces.count)
        return traces.isEmpty ? nil : traces
    }

    /// Tells what became of a message for one receiver; false when no trace has room for it.
    private mutating func trace(
        _ message: Message, to session: UInt32, qos: QoS, group: UInt32? = nil
    ) -> Bool {
        guard sessions[session].isUsed else { return true }
        guard let traces = tracesOfNextLine() else { return false }
        let outcome =
            if let target = sessions[session].connection {
                connections[target].outlet.count >= context.limits.outputBytes
                    ? "reads too slowly"
                    : sessions[session].outbound.waiting > 1
                        ? "has \(sessions[session].outbound.waiting) messages waiting"
                        : "gets it"
            } else if qos == .atMostOnce {
                "is offline and loses it"
            } else {
                "is offline: kept, \(sessions[session].outbound.waiting) waiting"
            }
        let name = group.map {
            String(decoding: subscriptions.filter(of: $0).array, as: UTF8.self)
        }
        context.topicTraces.append(
            TopicTraces.Event(
                traces: traces, clientID: sessions.identifier(of: session),
                text: "\(outcome), QoS \(qos.rawValue)" + (name.map { ", by \($0)" } ?? ""),
                payload: []))
        return true
    }
}
