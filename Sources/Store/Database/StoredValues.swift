/// A session as the store has it. Its bytes are valid only during the call that hands it over.
public struct StoredSession {
    public let number: UInt64
    public let clientID: UnsafeRawBufferPointer
    /// `nil` when the client gave no user name.
    public let userName: UnsafeRawBufferPointer?
    /// True when the client was connected, as far as the store knows.
    public let isAttached: Bool
    /// UNIX time in milliseconds since which the client is offline; meaningless while attached.
    public let detachedSinceMs: Int64
    /// Messages at positions below this one may have been sent.
    public let horizon: UInt64
    /// The next position to be assigned.
    public let end: UInt64
    /// Number of rows in its queue, released ones included.
    public let waitingMessages: Int
    /// Bytes of topics and payloads in its queue; released rows have none. An estimate while the
    /// journal has acknowledgements of messages in the database.
    public let waitingBytes: Int
    /// True when messages of the queue may have come by a shared subscription.
    public let holdsShared: Bool
    /// True when the session has ended and only its queue is left, whose messages other members of
    /// its shared subscriptions may get.
    public let hasEnded: Bool
}

/// A message as the store has it. Its bytes are valid only during the call that hands it over.
public struct StoredMessage {
    public let number: UInt64
    public let topic: UnsafeRawBufferPointer
    public let payload: UnsafeRawBufferPointer
    /// The QoS of the publisher's PUBLISH.
    public let qos: UInt8
    public let retain: Bool
    /// UNIX time in milliseconds; 0 for a message that never expires.
    public let expiresAtMs: Int64
    /// The message's identifier; empty for none.
    public let messageID: UnsafeRawBufferPointer

    init(
        number: UInt64, topic: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer,
        qos: UInt8, retain: Bool, expiresAtMs: Int64, messageID: UnsafeRawBufferPointer
    ) {
        self.number = number
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.expiresAtMs = expiresAtMs
        self.messageID = messageID
    }

    /// Reads the columns `number`, `published_qos`, `published_retain`, `expires_at_ms`, `topic`,
    /// `payload` and `message_id`, beginning at column `first`.
    init(_ row: borrowing SQLiteStatement, first: Int32) {
        number = row.number(first)
        qos = row.byte(first + 1)
        retain = row.flag(first + 2)
        expiresAtMs = row.integer(first + 3)
        topic = row.bytes(first + 4)
        payload = row.bytes(first + 5)
        messageID = row.bytes(first + 6)
    }
}
