import Authorization
import BrokerAPI
import MQTTCodec
import MQTTCore

/// The topic filters of live traces, and what became of messages that they match.
///
/// Without a trace it costs a message one look at ``isActive``.
package struct TopicTraces {
    /// What became of a message, for each trace that follows it.
    package struct Event: Sendable {
        package var traces: [UInt32]
        package var clientID: [UInt8]?
        package var text: String
        package var payload: [UInt8]
    }

    /// Events of one turn; more are counted.
    private static let mostOfTurn = 4_096

    private var filters: [(trace: UInt32, filter: [UInt8])] = []
    package private(set) var isActive = false
    private var events: [Event] = []
    private var leftOut = 0

    /// Follows messages for a trace.
    package mutating func add(_ trace: UInt32, filter: [UInt8]) {
        filters.append((trace, filter))
        isActive = true
    }

    package mutating func remove(_ trace: UInt32) {
        filters.removeAll { $0.trace == trace }
        isActive = !filters.isEmpty
    }

    /// The traces that follow messages on a topic.
    package func following(_ topic: UnsafeRawBufferPointer) -> [UInt32] {
        filters.compactMap { entry in
            entry.filter.withUnsafeBytes { FilterMatch.matches(filter: $0, topic: topic) }
                ? entry.trace : nil
        }
    }

    package mutating func append(_ event: Event) {
        guard events.count < Self.mostOfTurn else {
            leftOut += 1
            return
        }
        events.append(event)
    }

    /// The events since the last call, and how many there were beside them.
    package mutating func take() -> (events: [Event], leftOut: Int) {
        defer {
            events.removeAll(keepingCapacity: isActive)
            leftOut = 0
        }
        return (events, leftOut)
    }
}

extension Shard {
    /// Has a trace follow messages on the topics that a filter matches.
    public mutating func traceTopics(_ filter: String, for trace: UInt32) {
        context.topicTraces.add(trace, filter: Array(filter.utf8))
    }

    public mutating func endTopicTrace(_ trace: UInt32) { context.topicTraces.remove(trace) }

    /// Calls `body` with what became of traced messages since the last call; returns how many events
    /// were left out.
    public mutating func takeTopicEvents(
        _ body: (_ traces: [UInt32], _ client: [UInt8]?, _ text: String, _ payload: [UInt8]) -> Void
    ) -> Int {
        guard context.topicTraces.isActive else { return 0 }
        let (events, leftOut) = context.topicTraces.take()
        for event in events {
            body(event.traces, event.clientID, event.text, event.payload)
        }
        return leftOut
    }

    /// Tells traces of a PUBLISH; `publisher` is `nil` for one that came over HTTP.
    @inline(never)
    package mutating func tracePublish(
        _ topic: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, qos: QoS,
        retain: Bool, from publisher: UInt32?
    ) {
        let traces = context.topicTraces.following(topic)
        guard !traces.isEmpty else { return }
        context.topicTraces.append(
            TopicTraces.Event(
                traces: traces, clientID: publisher.map { sessions.identifier(of: $0) },
                text: "publishes \(String(decoding: topic, as: UTF8.self)), "
                    + "QoS \(qos.rawValue), \(payload.count) bytes"
                    + (retain ? ", RETAIN" : "") + (publisher == nil ? ", over HTTP" : ""),
                payload: [UInt8](payload.prefix(TraceRequest.mostPayloadBytes))))
    }

    /// Tells traces what became of a message for each receiver, after it was delivered.
    @inline(never)
    package mutating func traceDeliveries(
        _ message: Message, to matches: UnsafeBufferPointer<SubscriptionTrie.Match>,
        _ choices: UnsafeBufferPointer<SharedSubscriptions.Choice>?, needsCommit: Bool
    ) {
        let traces = context.topicTraces.following(message.topic)
        guard !traces.isEmpty else { return }
        let total = matches.count + (choices?.count ?? 0)
        context.topicTraces.append(
            TopicTraces.Event(
                traces: traces, clientID: nil,
                text: total == 0
                    ? "nobody subscribes to \(String(decoding: message.topic, as: UTF8.self))"
                    : "\(total) receive \(String(decoding: message.topic, as: UTF8.self))"
                        + (needsCommit ? ", after its commit" : ""),
                payload: []))
        for match in matches {
            trace(message, to: match.session, qos: min(message.qos, match.qos), traces)
        }
        for choice in choices ?? UnsafeBufferPointer(start: nil, count: 0) {
            trace(
                message, to: choice.session, qos: min(message.qos, choice.qos), traces,
                group: String(
                    decoding: subscriptions.filter(of: choice.group).array, as: UTF8.self))
        }
    }

    private mutating func trace(
        _ message: Message, to session: UInt32, qos: QoS, _ traces: [UInt32], group: String? = nil
    ) {
        guard sessions[session].isUsed else { return }
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
        context.topicTraces.append(
            TopicTraces.Event(
                traces: traces, clientID: sessions.identifier(of: session),
                text: "\(outcome), QoS \(qos.rawValue)" + (group.map { ", by \($0)" } ?? ""),
                payload: []))
    }
}
