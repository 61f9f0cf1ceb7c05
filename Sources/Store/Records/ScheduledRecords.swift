/// A message that is published at a later time.
public struct StoredScheduled: Hashable, Sendable {
    /// Numbers rise and are never used again.
    public var number: UInt64
    /// UNIX time in milliseconds at which it is published.
    public var dueMs: Int64
    /// Milliseconds after ``dueMs`` at which it expires; 0 for never.
    public var expiresInMs: Int64
    public var messageID: [UInt8]
    public var topic: [UInt8]
    public var payload: [UInt8]
    public var qos: UInt8
    public var retain: Bool
    /// True when its receivers are followed once it is published.
    public var isFollowed: Bool

    public init(
        number: UInt64, dueMs: Int64, expiresInMs: Int64, messageID: [UInt8], topic: [UInt8],
        payload: [UInt8], qos: UInt8, retain: Bool, isFollowed: Bool
    ) {
        self.number = number
        self.dueMs = dueMs
        self.expiresInMs = expiresInMs
        self.messageID = messageID
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.isFollowed = isFollowed
    }
}

/// A segment's changes of scheduled messages.
public struct ScheduledChanges: Hashable, Sendable {
    /// Ordered by number.
    public var added: [StoredScheduled] = []
    /// New times, in UNIX milliseconds, by number.
    public var moved: [UInt64: Int64] = [:]
    /// Published, expired or cancelled.
    public var ended: [UInt64] = []

    public init() {}

    public var isEmpty: Bool { added.isEmpty && moved.isEmpty && ended.isEmpty }
}
