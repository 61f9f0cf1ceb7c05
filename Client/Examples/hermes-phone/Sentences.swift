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

extension HermesClient.OutgoingMessage {
    var sentence: String {
        "outbox: \(id), \(message.topic.visible), QoS \(message.qos.rawValue), "
            + "\(message.payload.count) bytes" + (isHeldBack ? ", held back" : "")
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
        case .waiting(let milliseconds, let reason, let cause):
            "waiting \((milliseconds + 500) / 1_000) s, \(reason.sentence)"
                + (cause.map { ": \($0.description.visible)" } ?? "")
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
        }
    }
}

extension HermesClient.Event {
    var sentence: String {
        switch self {
        case .loss(let channel, let ranges):
            "lost in \(channel.visible): \(ranges.map { "\($0.lowerBound)-\($0.upperBound)" })"
        case .sessionLost: "the broker had lost the session"
        case .dropped(let reason): "disconnected: \(reason.description.visible)"
        case .renewalRefused(let filter): "the broker refused \(filter.visible)"
        case .publishRefused(let topic):
            "the broker refused a message to \(topic.visible), which is held back"
        case .unacknowledged(let topic, let milliseconds, let count):
            "a message to \(topic.visible) is not acknowledged after \(milliseconds / 1_000) s, "
                + "the oldest of \(count)"
        case .storageDamaged(let bytes, let setAside):
            "\(bytes) bytes of the storage cannot be read"
                + (setAside.map { "; the file is kept as \($0.visible)" } ?? "")
        case .storageFailed(let reason): "the storage cannot be written: \(reason.visible)"
        case .storageRecovered: "the storage can be written again"
        case .droppedAtMostOnce(let count): "\(count) messages of QoS 0 were dropped"
        }
    }
}
