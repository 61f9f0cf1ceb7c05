/// A decoded change of stored state, for tests to inspect.
///
/// Sessions and messages have numbers that are never used again, unlike slab indices.
public enum StoreRecord: Hashable, Sendable {
    /// A persistent session was created.
    case session(UInt64, clientIdentifier: [UInt8], userName: [UInt8]?)
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
    case subscription(UInt64, filter: [UInt8], qos: UInt8)
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
    /// The last sequence number of a channel.
    case sequence(channel: [UInt8], number: UInt64)
    /// The message of the same group was published under this key. Its bucket is none that was
    /// dropped.
    case publishKey(PublishKey)
    /// The keys of all buckets below this one are dropped.
    case publishKeysDropped(below: UInt64)
    /// The message of the same group is followed.
    case receipt(StoredReceipt)
    case receiptReceiver(StoredReceiver)
    case receiptEnded(ReceiverEnd)
    /// Receipts were dropped, or events taken.
    case receiptProgress(ReceiptProgress)
    /// A message that is published later.
    case scheduled(StoredScheduled)
    case scheduledMoved(UInt64, dueMs: Int64)
    /// It was cancelled or has expired, or it is published by the other records of the group.
    case scheduledEnded(UInt64)
    /// A queue position whose message a later one may replace; and its end.
    case collapsible(StoredCollapsible)
    case collapsibleEnded(session: UInt64, position: UInt64)
    case tag(StoredTag, isSet: Bool)
    case push(StoredPush)
    /// A slice of a push, whose deliveries are the other records of the group, or its end.
    case pushProgress(PushProgress)
    /// A push that has ended is not kept any more.
    case pushRemoved(UInt64)
    /// A device was registered, in place of the client's earlier one.
    case device(StoredDevice)
    case deviceRemoved([UInt8])
    /// The device of a client identifier was woken.
    case woken([UInt8], StoredDevice.Woken)
}
