/// A decoded change of stored state, for tests to inspect.
///
/// Sessions and messages have numbers that are never used again, unlike slab indices.
public enum StoreRecord: Hashable, Sendable {
    /// A persistent session was created.
    case session(UInt64, clientID: [UInt8], userName: [UInt8]?)
    /// The session was removed, with everything that belongs to it.
    case sessionRemoved(UInt64)
    /// The session has ended, and its subscriptions with it. Its queue stays until the session is
    /// removed, because other members of its shared subscriptions may get messages of it.
    case sessionEnded(UInt64)
    /// The session's client is connected. A session that is attached after a crash had a connected
    /// client.
    case attached(UInt64)
    /// The client has been offline since this UNIX time in milliseconds.
    case detached(UInt64, sinceMs: Int64)
    case subscription(UInt64, filter: [UInt8], grant: UInt32)
    case subscriptionRemoved(UInt64, filter: [UInt8])
    /// A message to which later records of the same group refer, and records of other groups never
    /// do.
    case message(
        UInt64, topic: [UInt8], payload: [UInt8], qos: UInt8, retain: Bool, expiresAtMs: Int64)
    /// The message of the record before has this identifier of 1 to 255 bytes.
    case named(UInt64, messageID: [UInt8])
    /// The message was queued at this position of the session's queue. Positions of a session only
    /// rise. With `isInWindow` the message may be sent as soon as it is stored, so that the horizon
    /// moves behind it.
    case queued(
        session: UInt64, position: UInt64, message: UInt64, qos: UInt8, retain: Bool,
        isInWindow: Bool)
    /// The position that was just queued came by this shared subscription; `filter` is its whole
    /// text.
    case shared(session: UInt64, position: UInt64, filter: [UInt8])
    /// Messages at positions below this one may have been sent; the others have not been.
    case horizon(session: UInt64, position: UInt64)
    /// PUBREC has come, so PUBREL is owed.
    case released(session: UInt64, position: UInt64)
    /// The message was acknowledged, expired or dropped: the position is done.
    case finished(session: UInt64, position: UInt64)
    /// A packet identifier of the client's QoS 2 message awaits PUBREL.
    case inbound(session: UInt64, packetIdentifier: UInt16)
    case inboundRemoved(session: UInt64, packetIdentifier: UInt16)
    case retained(message: UInt64)
    case retainedRemoved(topic: [UInt8])
    /// The will of the session's connection.
    case will(session: UInt64, message: UInt64)
    case willRemoved(session: UInt64)
    /// What a feature keeps under a key; it replaces an earlier fact of the key.
    case fact(Fact)
    case factRemoved(table: UInt8, owner: FactOwner, key: [UInt8])
    /// All facts of a table from one key on, below another one, are removed.
    case factsRemoved(table: UInt8, from: [UInt8], below: [UInt8])

    /// A fact that owns its bytes.
    public struct Fact: Hashable, Sendable {
        public var table: UInt8
        public var owner: FactOwner
        public var key: [UInt8]
        public var value: [UInt8]
        /// True when no earlier fact of this key was stored.
        public var isNew: Bool

        public init(
            table: UInt8, owner: FactOwner, key: [UInt8], value: [UInt8], isNew: Bool
        ) {
            self.table = table
            self.owner = owner
            self.key = key
            self.value = value
            self.isNew = isNew
        }
    }
}
