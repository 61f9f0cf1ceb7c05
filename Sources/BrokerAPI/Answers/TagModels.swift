/// The tags of a client, in their order as text.
public struct ClientTags: Codable, Sendable, Equatable {
    public var clientID: String
    public var tags: [String]

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case tags
    }

    public init(clientID: String, tags: [String]) {
        self.clientID = clientID
        self.tags = tags
    }
}

/// The outcome of a change of a client's tags.
public enum TagChange: Sendable, Equatable {
    /// It is stored; these are the client's tags now.
    case changed([String])
    /// The client would have more than ``mostTags``; nothing was changed.
    case tooManyTags
    /// The tags of all clients would take more than `limits.tag_bytes`; nothing was changed.
    case full

    /// Tags that a client has at most.
    public static let mostTags = 64
}

/// A tag, and how many clients have it.
public struct TagSummary: Codable, Sendable, Equatable {
    public var tag: String
    public var clients: Int

    public init(tag: String, clients: Int) {
        self.tag = tag
        self.clients = clients
    }
}

/// Some tags, in no particular order. A page may be short, or empty, although others follow.
public struct TagPage: Codable, Sendable, Equatable {
    public var tags: [TagSummary]
    /// The cursor of the next page; `nil` on the last.
    public var next: String?

    public init(tags: [TagSummary] = [], next: String? = nil) {
        self.tags = tags
        self.next = next
    }
}

/// Some clients with a tag, in no particular order. A page may be short, or empty, although others
/// follow.
public struct TaggedClientPage: Codable, Sendable, Equatable {
    /// Client identifiers.
    public var clients: [String]
    /// The cursor of the next page; `nil` on the last.
    public var next: String?

    public init(clients: [String] = [], next: String? = nil) {
        self.clients = clients
        self.next = next
    }
}
