import MQTTCodec

/// A message that the admin plane publishes. Its maker has checked it: the topic name is UTF-8 without
/// wildcards, and topic and payload keep to the limits.
package struct Publication: Sendable, Equatable {
    package var topic: [UInt8]
    package var payload: [UInt8]
    package var qos: QoS
    package var retain: Bool
    /// UNIX time in milliseconds after which it is no longer delivered; `nil` keeps it.
    package var expiresAtMs: Int64?
    /// Asks the shard to count in a channel and append the number to the payload.
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

/// A channel to count in. The number belongs to the message that the shard takes, so the shard assigns
/// it: it appends `tag` and the channel's next number, as a protobuf varint field, to the payload.
package struct SequenceStamp: Sendable, Equatable {
    package var channel: [UInt8]
    /// The field's tag byte: number << 3 | 0 (varint). The field is the last of its message.
    package var tag: UInt8

    package init(channel: [UInt8], tag: UInt8) {
        self.channel = channel
        self.tag = tag
    }
}
