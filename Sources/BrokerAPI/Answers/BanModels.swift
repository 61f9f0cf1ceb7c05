/// A ban in answers of the API; exactly one of `clientID`, `userName` and `address` is set.
public struct BanModel: Codable, Sendable, Equatable {
    public var id: String
    public var clientID: String?
    public var userName: String?
    /// An IP address, or a network with its prefix length.
    public var address: String?
    /// UNIX times in milliseconds; `nil` for a ban until it is lifted.
    public var createdMs: Int64
    public var expiresMs: Int64?
    /// Empty when none was given.
    public var reason: String
    /// The name of the token by which it was made; empty for a caller on the Unix socket.
    public var by: String
    /// CONNECTs, or connections from a banned address, that it has refused since the broker's start.
    public var refused: Int
    /// UNIX time in milliseconds of the latest of them; `nil` before the first.
    public var lastRefusedMs: Int64?

    enum CodingKeys: String, CodingKey {
        case id
        case clientID = "client_id"
        case userName = "user_name"
        case address
        case createdMs = "created_at_ms"
        case expiresMs = "expires_at_ms"
        case reason, by, refused
        case lastRefusedMs = "last_refused_at_ms"
    }

    public init(_ ban: Ban, hits: BanHits.Count) {
        id = ban.id.text
        switch ban.target {
        case .client: clientID = ban.target.text
        case .user: userName = ban.target.text
        case .address: address = ban.target.text
        }
        createdMs = ban.created * 1_000
        expiresMs = ban.expires.map { $0 * 1_000 }
        reason = ban.reason
        by = ban.author
        refused = hits.refused
        lastRefusedMs = hits.lastMs
    }
}

/// Answer of `GET /v1/bans`.
public struct BanList: Codable, Sendable, Equatable {
    /// The oldest first; without those that have expired.
    public var bans: [BanModel]
    /// The cursor of the next page; `nil` on the last.
    public var next: String?

    public init(bans: [BanModel], next: String? = nil) {
        self.bans = bans
        self.next = next
    }
}

/// Answer of `POST /v1/bans`.
public struct BanCreated: Codable, Sendable, Equatable {
    public var ban: BanModel
    /// Connections that it closed.
    public var disconnected: Int

    public init(ban: BanModel, disconnected: Int) {
        self.ban = ban
        self.disconnected = disconnected
    }
}

/// Answer of `DELETE /v1/bans/{id}`.
public struct BanLifted: Codable, Sendable, Equatable {
    public var lifted: BanModel

    public init(lifted: BanModel) { self.lifted = lifted }
}
