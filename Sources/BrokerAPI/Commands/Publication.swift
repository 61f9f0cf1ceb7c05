import MQTTCodec

/// A message from the admin plane, checked by its creator: the topic name is UTF-8 without
/// wildcards, and topic and payload are within the limits.
package struct Publication: Sendable, Equatable {
    package var topic: [UInt8]
    package var payload: [UInt8]
    package var qos: QoS
    package var retain: Bool
    /// UNIX time in milliseconds after which it is not delivered; `nil` never expires.
    package var expiresAtMs: Int64?
    /// Asks the shard to append the next number of a channel to the payload.
    package var sequence: SequenceStamp?

    package init(
        topic: [UInt8], payload: [UInt8], qos: QoS, retain: Bool = false,
        expiresAtMs: Int64? = nil, sequence: SequenceStamp? = nil
    ) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.expiresAtMs = expiresAtMs
        self.sequence = sequence
    }
}

/// A sequence of numbers. The shard assigns them in the order of messages: it appends `tag` and the
/// channel's next number to the payload, as a protobuf varint field.
package struct SequenceStamp: Sendable, Equatable {
    package var channel: [UInt8]
    /// The field's tag byte: number << 3 | 0 (varint). The field is the last of its message.
    package var tag: UInt8

    package init(channel: [UInt8], tag: UInt8) {
        self.channel = channel
        self.tag = tag
    }
}
