/// Receives the content of a store when the broker starts. Bytes are valid only during each call.
public protocol StoreVisitor: ~Copyable {
    mutating func visit(lastSession: UInt64, lastMessage: UInt64)
    mutating func visit(_ session: StoredSession)
    mutating func visit(
        subscription filter: UnsafeRawBufferPointer, of session: UInt64, qos: UInt8)
    mutating func visit(packetIdentifier: UInt16, of session: UInt64)
    /// The message at a position of a session's queue expires at this UNIX time in milliseconds. Also
    /// for some that are released. `bytes` are those of topic and payload.
    mutating func visit(position: UInt64, of session: UInt64, bytes: Int, expiresAtMs: Int64)
    mutating func visit(retained message: StoredMessage)
    mutating func visit(will message: StoredMessage, of session: UInt64)
    /// Comes after everything else. Facts are ordered by table and key. Returns false for one that
    /// makes no sense.
    mutating func visit(_ fact: StoredFact) -> Bool
}
