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
    /// The token that published it owns its identifiers and the room that they take.
    public var owner = OwnerID.unknown
    /// Asks the shard to publish it once, however often it comes.
    public var identity: PublishIdentity?
    /// The message's identifier, of which 255 bytes are kept with the message; empty for none.
    public var messageID: [UInt8] = []
    /// The message's identifier, when its receivers are to be followed by it; empty otherwise.
    public var receiptID: [UInt8] = []
    /// Names its topic and collapse key: the message replaces those of the same that are queued and
    /// were never sent. `nil` replaces none.
    public var collapseKey: UInt128?
    public var wake = WakeRequest.byRules
    /// Properties of MQTT 5.0 that its receivers get, as encoded and checked; at most 65,535 bytes.
    public var properties: [UInt8] = []
    /// Asks the shard to publish it later; `nil` publishes it at once.
    public var schedule: MessageSchedule?
    /// Asks the shard for its outcome if it is a repeat, and to publish nothing.
    public var isOnlyRepeated = false

    /// Sequences that a message supersedes at most.
    public static let mostSuperseded = 32
    /// Bytes that the shard may append to the payload: a sequence and those that it supersedes, a tag
    /// byte and up to ten bytes each.
    public static let mostStampBytes = 11 * (1 + mostSuperseded)

    public init(
        topic: [UInt8], payload: [UInt8], qos: QoS, retain: Bool = false,
        expiresAtMs: Int64? = nil, sequence: SequenceStamp? = nil,
        identity: PublishIdentity? = nil
    ) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.expiresAtMs = expiresAtMs
        self.sequence = sequence
        self.identity = identity
    }
}

/// The time at which a message is published.
public struct MessageSchedule: Sendable, Equatable {
    /// The message's identifier, by which it is found until then.
    public var messageID: [UInt8]
    /// UNIX time in milliseconds.
    public var deliverAtMs: Int64
    /// Milliseconds from then on after which it expires; 0 for never.
    public var expiresInMs: Int64
    /// The shard's number of it, when the shard publishes it; `nil` before it is scheduled.
    public var number: UInt64?

    public init(
        messageID: [UInt8], deliverAtMs: Int64, expiresInMs: Int64, number: UInt64? = nil
    ) {
        self.messageID = messageID
        self.deliverAtMs = deliverAtMs
        self.expiresInMs = expiresInMs
        self.number = number
    }
}

/// By which a repeat of a message is recognised.
public struct PublishIdentity: Sendable, Equatable, BitwiseCopyable {
    /// Names the caller and its key.
    public var key: UInt128
    /// Digest of all that the caller asked for. A repeat with another digest is refused (422).
    public var digest: UInt128
    /// The identifier that was made for the message; a repeat gets that of the first.
    public var messageID: UInt128
    /// True when the caller gave a key for this alone, so that it must not be passed over.
    public var isExplicit: Bool

    public init(key: UInt128, digest: UInt128, messageID: UInt128, isExplicit: Bool) {
        self.key = key
        self.digest = digest
        self.messageID = messageID
        self.isExplicit = isExplicit
    }
}

/// A sequence of numbers. The shard assigns them in the order of messages: it appends `tag` and the
/// channel's next number to the payload, as a protobuf varint field.
public struct SequenceStamp: Sendable, Equatable {
    public var channel: [UInt8]
    /// The field's tag byte: number << 3 | 0 (varint). Only superseded sequences
    /// follow the field.
    public var tag: UInt8
    /// The tag byte of the field with the next number, which names each sequence that the message
    /// supersedes. These fields follow.
    public var supersededTag: UInt8 { tag &+ 1 << 3 }

    public init(channel: [UInt8], tag: UInt8) {
        self.channel = channel
        self.tag = tag
    }
}
