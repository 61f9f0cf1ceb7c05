import HermesKit

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
