/// Asks to send one message to many clients, without subscriptions.
public struct PushRequest: Sendable, Equatable {
    /// The message. Its ``Publication/receiptID`` is ``pushID`` when its receivers are followed.
    public var publication: Publication
    /// By which the push is found; 1 to 128 bytes.
    public var pushID: [UInt8]
    public let target: PushTarget
    /// The target as the store keeps it. It is made here, on the caller's thread.
    public let encodedTarget: [UInt8]
    /// UNIX time in milliseconds; `nil` begins at once.
    public var deliverAtMs: Int64?
    /// Milliseconds from the beginning of the push after which the message expires; 0 for never.
    public var expiresInMs: Int64
    /// Milliseconds over which the push is spread evenly; 0 for as fast as possible.
    public var spreadMs: Int64

    public init(
        publication: Publication, pushID: [UInt8], target: PushTarget, deliverAtMs: Int64? = nil,
        expiresInMs: Int64 = 0, spreadMs: Int64 = 0
    ) {
        self.publication = publication
        self.pushID = pushID
        self.target = target
        encodedTarget = target.encoded
        self.deliverAtMs = deliverAtMs
        self.expiresInMs = expiresInMs
        self.spreadMs = spreadMs
    }
}

/// The clients of a push.
public enum PushTarget: Sendable, Hashable {
    /// These client identifiers, each once.
    case clients([[UInt8]])
    /// The clients with these tags when the push comes to them.
    case tags(TagExpression)
}

/// Chooses clients by their tags.
public struct TagExpression: Sendable, Hashable {
    /// A client has at least one of these; without any it need not.
    public var any: [[UInt8]]
    /// It has all of these,
    public var all: [[UInt8]]
    /// and none of these.
    public var none: [[UInt8]]

    public init(any: [[UInt8]] = [], all: [[UInt8]] = [], none: [[UInt8]] = []) {
        self.any = any
        self.all = all
        self.none = none
    }
}
