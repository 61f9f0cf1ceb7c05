/// A session as the store holds it; its bytes are valid within the call that hands it over.
public struct StoredSession {
    public let number: UInt64
    public let clientIdentifier: UnsafeRawBufferPointer
    /// `nil`: the client gave none.
    public let userName: UnsafeRawBufferPointer?
    /// The client was connected, as far as the store knows.
    public let isAttached: Bool
    /// UNIX time in milliseconds since which the client is away; without meaning while attached.
    public let detachedSinceMs: Int64
    /// Positions below were or may have been sent.
    public let horizon: UInt64
    /// The next position to be given.
    public let end: UInt64
    /// Rows of its queue, released ones included.
    public let waitingMessages: Int
    /// Bytes of their topics and payloads; released ones have none. An estimate while acknowledgements
    /// of what is in the database wait in the journal.
    public let waitingBytes: Int
    /// Some of them may have come by a shared subscription.
    public let holdsShared: Bool
    /// It is over; only what its queue owes to other members of its shared subscriptions is left.
    public let hasEnded: Bool
}

/// A message as the store holds it; its bytes are valid within the call that hands it over.
public struct StoredMessage {
    public let number: UInt64
    public let topic: UnsafeRawBufferPointer
    public let payload: UnsafeRawBufferPointer
    /// As it was published.
    public let qos: UInt8
    public let retain: Bool
    /// UNIX time in milliseconds; 0 is never.
    public let expiresAtMs: Int64

    init(
        number: UInt64, topic: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer,
        qos: UInt8, retain: Bool, expiresAtMs: Int64
    ) {
        self.number = number
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.expiresAtMs = expiresAtMs
    }

    /// The columns `number`, `published_qos`, `published_retain`, `expires_at_ms`, `topic` and
    /// `payload`, from `first` on.
    init(_ row: borrowing SQLiteStatement, first: Int32) {
        number = row.number(first)
        qos = row.byte(first + 1)
        retain = row.flag(first + 2)
        expiresAtMs = row.integer(first + 3)
        topic = row.bytes(first + 4)
        payload = row.bytes(first + 5)
    }
}
