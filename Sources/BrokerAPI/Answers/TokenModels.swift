/// Answer of `GET /v1/tokens`, and of `hermesctl tokens list --json`.
public struct TokenList: Codable, Sendable, Equatable {
    /// In the order of the file.
    public var tokens: [TokenSummary]

    public init(tokens: [TokenSummary]) { self.tokens = tokens }
}

/// A token without its secret.
public struct TokenSummary: Codable, Sendable, Equatable {
    public var name: String
    public var scopes: [String]
    /// Filters of the topic names that it may publish to; empty for all.
    public var topics: [String]
    /// Such as "500/s"; `nil` without a bound.
    public var rate: String?
    /// Such as "2025-01-31T08:00:00Z".
    public var created: String
    /// `nil` for a token that never expires.
    public var expires: String?
    public var expired: Bool

    public init(
        name: String, scopes: [String], topics: [String], rate: String?, created: String,
        expires: String?, expired: Bool
    ) {
        self.name = name
        self.scopes = scopes
        self.topics = topics
        self.rate = rate
        self.created = created
        self.expires = expires
        self.expired = expired
    }
}

/// Answer of `POST /v1/tokens`: in JSON the members of ``TokenSummary``, and the secret beside them.
public struct TokenCreated: Codable, Sendable, Equatable {
    /// The secret, which is shown this once.
    public var token: String
    public var summary: TokenSummary

    private enum CodingKeys: String, CodingKey { case token }

    public init(token: String, summary: TokenSummary) {
        self.token = token
        self.summary = summary
    }

    public init(from decoder: any Decoder) throws {
        token = try decoder.container(keyedBy: CodingKeys.self).decode(String.self, forKey: .token)
        summary = try TokenSummary(from: decoder)
    }

    public func encode(to encoder: any Encoder) throws {
        try summary.encode(to: encoder)
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(token, forKey: .token)
    }
}

/// Answer of `DELETE /v1/tokens/{name}`.
public struct TokenRevoked: Codable, Sendable, Equatable {
    public var revoked: String

    public init(revoked: String) { self.revoked = revoked }
}
