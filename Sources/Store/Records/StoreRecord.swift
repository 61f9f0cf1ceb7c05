/// A change of stored state, decoded: what a test inspects.
///
/// Sessions and messages go by numbers of their own, which are never reused, unlike slab indices.
public enum StoreRecord: Hashable, Sendable {
    /// A persistent session was made.
    case session(UInt64, clientIdentifier: [UInt8], userName: [UInt8]?)
    /// The session is gone with everything that is keyed by it.
    case sessionRemoved(UInt64)
    /// The session is over, and its subscriptions with it; its queue stays until the session is removed,
    /// because other members of its shared subscriptions get some of it.
    case sessionEnded(UInt64)
    /// The session's client is connected; what a crash finds attached was connected when it came.
    case attached(UInt64)
    /// The client has been away since this UNIX time in milliseconds.
    case detached(UInt64, sinceMs: Int64)
    case subscription(UInt64, filter: [UInt8], qos: UInt8)
    case subscriptionRemoved(UInt64, filter: [UInt8])
    /// Content that later records of the same group refer to, and no record of another group.
    case message(
        UInt64, topic: [UInt8], payload: [UInt8], qos: UInt8, retain: Bool, expiresAtMs: Int64)
    /// The message waits at this position of the session's queue. Positions of a session only rise.
    /// With `isInWindow` it may be sent as soon as it is stored, and so moves the horizon behind it.
    case queued(
        session: UInt64, position: UInt64, message: UInt64, qos: UInt8, retain: Bool,
        isInWindow: Bool)
    /// The position just queued came by this shared subscription, which is the whole filter.
    case shared(session: UInt64, position: UInt64, filter: [UInt8])
    /// Positions below this one may have been sent; those from it on have not.
    case horizon(session: UInt64, position: UInt64)
    /// PUBREC came: PUBREL is owed.
    case released(session: UInt64, position: UInt64)
    /// Acknowledged, expired or dropped: the position is done.
    case finished(session: UInt64, position: UInt64)
    /// A QoS 2 identifier of the client awaits its PUBREL.
    case inbound(session: UInt64, packetIdentifier: UInt16)
    case inboundRemoved(session: UInt64, packetIdentifier: UInt16)
    case retained(message: UInt64)
    case retainedRemoved(topic: [UInt8])
    /// The will of the session's connection.
    case will(session: UInt64, message: UInt64)
    case willRemoved(session: UInt64)
    /// The last number given in a channel.
    case sequence(channel: [UInt8], number: UInt64)
}
