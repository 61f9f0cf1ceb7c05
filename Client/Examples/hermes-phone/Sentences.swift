import HermesClient

extension HermesClient.ReceivedMessage {
    /// One line of JSON: an order status as an object, any other payload as text.
    var line: String {
        var fields = [("topic", topic.json), ("qos", "\(qos.rawValue)")]
        if isRetained { fields.append(("retained", "true")) }
        if let envelope {
            fields.append(("messageId", envelope.messageID.json))
            if let sequence = envelope.sequence {
                fields.append(("channel", envelope.channel.json))
                fields.append(("sequence", "\(sequence)"))
            }
        }
        if orderStatus != nil, let json {
            fields.append(("orderStatus", json))
        } else {
            let content = envelope?.payload ?? payload
            fields.append(("text", String(decoding: content, as: UTF8.self).json))
        }
        return "{" + fields.map { "\($0.0.json):\($0.1)" }.joined(separator: ",") + "}"
    }
}

extension HermesClient.Statistics {
    var sentence: String {
        "statistics: received \(received), duplicates \(duplicates), losses \(losses), "
            + "dropped at QoS 0 \(droppedAtMostOnce), published \(published), "
            + "on their way \(unacknowledgedPublishes), connects \(connects), "
            + "lost connections \(lostConnections), lost sessions \(lostSessions), "
            + "heartbeat \(heartbeatSeconds) s"
    }
}

extension HermesClient.State {
    var sentence: String {
        switch self {
        case .connecting(let attempt): "connecting, try \(attempt)"
        case .connected(sessionPresent: true): "connected, the session goes on"
        case .connected(sessionPresent: false): "connected, with a new session"
        case .waiting(let milliseconds, let reason):
            "waiting \((milliseconds + 500) / 1_000) s, \(reason.sentence)"
        case .suspended: "suspended"
        case .stopped(let reason): "stopped, \(reason.sentence)"
        }
    }
}

extension HermesClient.WaitReason {
    fileprivate var sentence: String {
        switch self {
        case .retrying: "then another try"
        case .unreachable: "the broker cannot be reached"
        case .takenOver: "another client takes this one's session"
        }
    }
}

extension HermesClient.StopReason {
    fileprivate var sentence: String {
        switch self {
        case .notStarted: "not started"
        case .requested: "as asked"
        case .unacceptableProtocolVersion: "the broker does not speak MQTT 3.1.1"
        case .identifierRejected: "the broker rejects the client identifier"
        case .credentialsRefused: "the broker refuses the credentials"
        case .storageFailed(let reason): reason.visible
        }
    }
}

extension HermesClient.Event {
    var sentence: String {
        switch self {
        case .loss(let channel, let ranges):
            "lost in \(channel.visible): \(ranges.map { "\($0.lowerBound)-\($0.upperBound)" })"
        case .sessionLost: "the broker had lost the session"
        case .dropped(let reason): "disconnected: \(reason.visible)"
        case .renewalRefused(let filter): "the broker refused \(filter.visible)"
        case .droppedAtMostOnce(let count): "\(count) messages of QoS 0 were dropped"
        }
    }
}
