/// Receives the content of a store when the broker starts. Bytes are valid only during each call.
///
/// A call with a result returns false for what makes no sense to the visitor, which then keeps
/// nothing of it; the store tells the operator.
public protocol StoreVisitor: ~Copyable {
    mutating func visit(lastSession: UInt64, lastMessage: UInt64)
    @discardableResult mutating func visit(_ session: StoredSession) -> Bool
    @discardableResult mutating func visit(
        subscription filter: UnsafeRawBufferPointer, of session: UInt64, grant: UInt32
    ) -> Bool
    @discardableResult mutating func visit(packetIdentifier: UInt16, of session: UInt64) -> Bool
    /// The message at a position of a session's queue expires at this UNIX time in milliseconds. Also
    /// for some that are released. `bytes` are those of topic and payload.
    mutating func visit(position: UInt64, of session: UInt64, bytes: Int, expiresAtMs: Int64)
    @discardableResult mutating func visit(retained message: StoredMessage) -> Bool
    @discardableResult mutating func visit(
        will message: StoredMessage, of session: UInt64
    ) -> Bool
    /// Comes after everything else. Facts are ordered by table and key.
    mutating func visit(_ fact: StoredFact) -> Bool
}
