/// Answer of `GET /v1/users`.
public struct UserPage: Codable, Sendable, Equatable {
    /// In the order of the file.
    public var users: [UserSummary]
    /// The cursor of the next page; `nil` on the last.
    public var next: String?

    public init(users: [UserSummary], next: String? = nil) {
        self.users = users
        self.next = next
    }
}

/// A user without the hash itself.
public struct UserSummary: Codable, Sendable, Equatable {
    public var name: String
    /// The kind of hash and its costs, such as "argon2id m=19456,t=2,p=1".
    public var hash: String

    public init(name: String, hash: String) {
        self.name = name
        self.hash = hash
    }
}

/// Answer of `PUT /v1/users/{name}`.
public struct UserSet: Codable, Sendable, Equatable {
    public var name: String
    /// False when the user was there, and has a new password.
    public var created: Bool
    /// Connections that were closed.
    public var disconnected: Int

    public init(name: String, created: Bool, disconnected: Int) {
        self.name = name
        self.created = created
        self.disconnected = disconnected
    }
}

/// Answer of `DELETE /v1/users/{name}`.
public struct UserRemoved: Codable, Sendable, Equatable {
    public var removed: String
    /// Connections that were closed.
    public var disconnected: Int

    public init(removed: String, disconnected: Int) {
        self.removed = removed
        self.disconnected = disconnected
    }
}

/// A line of the answer of `POST /v1/users/import`, for a user that was taken.
public struct UserImported: Codable, Sendable, Equatable {
    /// The number of the line, from 1.
    public var line: Int
    public var name: String
    /// False when the user was there, and has a new password.
    public var created: Bool

    public init(line: Int, name: String, created: Bool) {
        self.line = line
        self.name = name
        self.created = created
    }
}

/// Answer of `PUT /v1/access-rules`.
public struct AccessRulesSet: Codable, Sendable, Equatable {
    /// How many rules are in force.
    public var rules: Int
    /// The version of the text, as in the header ETag.
    public var etag: String

    public init(rules: Int, etag: String) {
        self.rules = rules
        self.etag = etag
    }
}
