import MQTTCodec

/// A message from the admin plane, checked by its creator: the topic name is UTF-8 without
/// wildcards, and topic and payload are within the limits.
public struct Publication: Sendable, Equatable {
    public var topic: [UInt8]
    public var payload: [UInt8]
    public var qos: QoS
    public var retain: Bool
    /// UNIX time in milliseconds after which it is not delivered; `nil` never expires.
    public var expiresAtMs: Int64?
    /// Asks the shard to append the next number of a channel to the payload.
    public var sequence: SequenceStamp?

    public init(
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
public struct SequenceStamp: Sendable, Equatable {
    public var channel: [UInt8]
    /// The field's tag byte: number << 3 | 0 (varint). The field is the last of its message.
    public var tag: UInt8

    public init(channel: [UInt8], tag: UInt8) {
        self.channel = channel
        self.tag = tag
    }
}
