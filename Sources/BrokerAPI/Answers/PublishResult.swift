/// Receivers of a message, counted when it was routed.
public struct PublishCounts: Codable, Sendable, Equatable {
    /// Sessions with a matching subscription.
    public var matched = 0
    /// Matched receivers that are connected.
    public var online = 0
    /// Matched receivers that are offline and have it in their queues.
    public var queued = 0
    /// Matched receivers that lost it at once (a limit, or QoS 0 while offline).
    public var dropped = 0
    /// Why a message with RETAIN was not retained; `nil` when it was, and for others.
    public var notRetained: NotRetained?

    enum CodingKeys: String, CodingKey {
        case matched, online, queued, dropped
        case notRetained = "not_retained"
    }

    public init(matched: Int = 0, online: Int = 0, queued: Int = 0, dropped: Int = 0) {
        self.matched = matched
        self.online = online
        self.queued = queued
        self.dropped = dropped
    }
}

/// Why a message was delivered and not retained: the limit, or that its time was over.
public enum NotRetained: String, Codable, Sendable {
    case maxRetained = "max_retained"
    case retainedBytes = "retained_bytes"
    case memory
    case expired

    public init?(_ limit: Limit) {
        switch limit {
        case .maxRetained: self = .maxRetained
        case .retainedBytes: self = .retainedBytes
        case .memory: self = .memory
        default: return nil
        }
    }
}

/// What became of one message.
public enum PublishOutcome: Sendable, Equatable {
    case published(PublishCounts)
    /// It was published before under the same key: the answer of then, with the identifier that was
    /// made for the message. Nothing was published now, nor in the cases below.
    case repeated(PublishCounts, messageID: UInt128)
    /// Another message was published under its key.
    case keyReused
    /// It was to be answered only if it is a repeat, and it is none.
    case notRepeated
    /// It has a key, and the broker keeps none.
    case keysAreOff
    /// Its receivers were to be followed, and the broker keeps no receipts.
    case receiptsAreOff
    /// It is published at this UNIX time in milliseconds.
    case scheduled(deliverAtMs: Int64)
    /// It was to be scheduled, and a scheduled message has its identifier.
    case alreadyScheduled
    /// It was to be scheduled, and there are as many scheduled messages as there may be.
    case tooManyScheduled
    case refused(BrokerUnavailable)
}

/// Answer of every publish over HTTP; the counts are members of the same JSON object.
public struct PublishResult: Codable, Sendable, Equatable {
    public var messageID: String
    /// "none", "interval" or "sync": the durability of the message.
    public var durability: String
    public var counts: PublishCounts
    /// True when an earlier publish with the same key got this answer.
    public var duplicate: Bool
    /// The time of a message that is published later.
    public var scheduled: ScheduledTime?

    enum CodingKeys: String, CodingKey {
        case messageID = "message_id"
        case durability, duplicate, scheduled
    }

    public init(
        messageID: String, durability: String, counts: PublishCounts, duplicate: Bool = false,
        scheduled: ScheduledTime? = nil
    ) {
        self.messageID = messageID
        self.durability = durability
        self.counts = counts
        self.duplicate = duplicate
        self.scheduled = scheduled
    }

    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        messageID = try members.decode(String.self, forKey: .messageID)
        durability = try members.decode(String.self, forKey: .durability)
        duplicate = try members.decode(Bool.self, forKey: .duplicate)
        scheduled = try members.decodeIfPresent(ScheduledTime.self, forKey: .scheduled)
        counts = try PublishCounts(from: decoder)
    }

    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(messageID, forKey: .messageID)
        try members.encode(durability, forKey: .durability)
        try members.encode(duplicate, forKey: .duplicate)
        try members.encodeIfPresent(scheduled, forKey: .scheduled)
        try counts.encode(to: encoder)
    }
}
