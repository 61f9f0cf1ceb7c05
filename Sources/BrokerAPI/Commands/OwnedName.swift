/// The owner of an identifier: a digest of the name of the API token that gave it.
///
/// The shard compares owners and divides room among them; it need not know their names.
public struct OwnerID: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    /// Eight bytes of the digest; 0 for ``unknown``.
    public let rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The owner of what was stored before owners were.
    public static let unknown = OwnerID(rawValue: 0)
}

/// An identifier that a caller of the admin plane gave, of a message or a push, with its owner. Two
/// owners may give the same one.
public struct OwnedName: Hashable, Sendable {
    public var owner: OwnerID
    /// 1 to 128 visible ASCII characters.
    public var name: [UInt8]

    public init(_ name: [UInt8], of owner: OwnerID) {
        self.name = name
        self.owner = owner
    }
}
