/// Receives the content of a store when the broker starts. Bytes are valid only during each call.
public protocol StoreVisitor: ~Copyable {
    mutating func visit(lastSession: UInt64, lastMessage: UInt64)
    mutating func visit(_ session: StoredSession)
    mutating func visit(
        subscription filter: UnsafeRawBufferPointer, of session: UInt64, qos: UInt8)
    mutating func visit(packetIdentifier: UInt16, of session: UInt64)
    mutating func visit(retained message: StoredMessage)
    mutating func visit(channel: UnsafeRawBufferPointer, number: UInt64)
    mutating func visit(will message: StoredMessage, of session: UInt64)
    /// Keys of buckets below this one are dropped; 0 when that is not known. New keys must lie in
    /// this bucket or a later one.
    mutating func visit(publishKeysFrom bucket: UInt64)
    /// Buckets come in rising order.
    mutating func visit(_ key: PublishKey)
    /// Comes before the receipts.
    mutating func visit(_ progress: ReceiptProgress)
    /// Numbers rise.
    mutating func visit(_ receipt: StoredReceipt)
    /// Comes after all receipts. Its end has the outcome 0 while it is open.
    mutating func visit(_ receiver: StoredReceiver, _ end: ReceiverEnd)
    /// The highest number of a scheduled message that the journal knows; the messages that follow may
    /// have higher ones.
    mutating func visit(lastScheduled: UInt64)
    /// Numbers rise. `dueMs` is the time to which it was moved last.
    mutating func visit(_ scheduled: StoredScheduled, dueMs: Int64)
    /// Its session may be gone.
    mutating func visit(_ position: StoredCollapsible)
    mutating func visit(_ tag: StoredTag)
    /// The highest number of a push that the journal knows; the pushes that follow may have higher
    /// ones.
    mutating func visit(lastPush: UInt64)
    /// Numbers rise.
    mutating func visit(_ push: StoredPush)
    /// Comes after all sessions.
    mutating func visit(_ device: StoredDevice)
}
