import MQTTCodec

/// A message of QoS 1 or 2 that the app has published and the broker has not yet taken over.
package struct OutgoingMessage: Hashable, Sendable {
    /// Names the message in the storage and to the app; rises by one with every message.
    package var key: UInt64
    /// Chosen when the message is stored, so that each resend has it [MQTT-4.4.0-1].
    package var identifier: PacketIdentifier
    package var topic: [UInt8]
    package var payload: [UInt8]
    /// Not ``QoS/atMostOnce``.
    package var qos: QoS
    package var retain: Bool
    /// PUBREC has come: only PUBREL is sent from now on, and the payload is no longer kept.
    package var isReleased = false

    /// Bytes that count against the outbox's limit.
    package var size: Int { topic.count + payload.count }

    fileprivate func isReplaced(by other: OutgoingMessage) -> Bool {
        key == other.key || identifier == other.identifier
    }
}

/// The messages on their way to the broker, in the order of publishing.
package struct Outbox: Equatable, Sendable {
    package private(set) var messages: [OutgoingMessage] = []
    /// Messages upon which the broker has closed connections, and others of their topics, in the
    /// order of publishing: they are not sent before ``retry(_:)``.
    package private(set) var held: [OutgoingMessage] = []
    /// Topics and payloads together, of both.
    package private(set) var bytes = 0

    package init() {}

    /// An earlier message with the key or the identifier has left the outbox: both are taken from
    /// those that are free. It is here only if damage of the file has cost the record of its end.
    package mutating func append(_ message: OutgoingMessage) {
        while let earlier = messages.first(where: { $0.isReplaced(by: message) })
            ?? held.first(where: { $0.isReplaced(by: message) })
        {
            remove(earlier.key)
        }
        messages.append(message)
        bytes += message.size
    }

    package mutating func release(_ key: UInt64) {
        guard let index = index(of: key) else { return }
        bytes -= messages[index].payload.count
        messages[index].payload = []
        messages[index].isReleased = true
    }

    package mutating func remove(_ key: UInt64) {
        if let index = index(of: key) {
            bytes -= messages.remove(at: index).size
        } else if let index = held.firstIndex(where: { $0.key == key }) {
            bytes -= held.remove(at: index).size
        }
    }

    package mutating func holdBack(_ key: UInt64) {
        guard let index = index(of: key) else { return }
        let message = messages.remove(at: index)
        held.insert(message, at: held.firstIndex { $0.key > key } ?? held.count)
    }

    /// A message that was held back becomes the last one to be sent.
    package mutating func retry(_ key: UInt64) {
        guard let index = held.firstIndex(where: { $0.key == key }) else { return }
        messages.append(held.remove(at: index))
    }

    /// Messages with this topic that are held back.
    package func held(withTopic topic: [UInt8]) -> [OutgoingMessage] {
        held.filter { $0.topic == topic }
    }

    /// Messages with this topic that are to be sent and that the broker may refuse.
    package func unreleased(withTopic topic: [UInt8]) -> [OutgoingMessage] {
        messages.filter { $0.topic == topic && !$0.isReleased }
    }

    /// Messages, those that are held back included.
    package var count: Int { messages.count + held.count }

    package subscript(key: UInt64) -> OutgoingMessage? {
        messages.first { $0.key == key } ?? held.first { $0.key == key }
    }

    /// Keeps only messages without a PUBREC: those of a lost session that are published anew.
    package mutating func removeReleased() {
        messages.removeAll(where: \.isReleased)
        bytes = (messages + held).reduce(0) { $0 + $1.size }
    }

    package func contains(_ identifier: PacketIdentifier) -> Bool {
        messages.contains { $0.identifier == identifier }
            || held.contains { $0.identifier == identifier }
    }

    private func index(of key: UInt64) -> Int? { messages.firstIndex { $0.key == key } }
}
