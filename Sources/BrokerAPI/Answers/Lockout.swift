/// A user from an address, or an address, that is locked out after too many wrong passwords.
public struct Lockout: Codable, Sendable, Equatable {
    /// `nil` for an address whatever the user. A long one is cut.
    public var userName: String?
    /// An IPv4 address, or the /64 network of an IPv6 address.
    public var address: String
    public var wrongPasswords: Int
    /// UNIX time in milliseconds.
    public var untilMs: Int64

    enum CodingKeys: String, CodingKey {
        case userName = "user_name"
        case address
        case wrongPasswords = "wrong_passwords"
        case untilMs = "until_at_ms"
    }

    public init(userName: String?, address: String, wrongPasswords: Int, untilMs: Int64) {
        self.userName = userName
        self.address = address
        self.wrongPasswords = wrongPasswords
        self.untilMs = untilMs
    }
}

/// Answer of `GET /v1/lockouts`.
public struct LockoutList: Codable, Sendable, Equatable {
    /// In no particular order.
    public var lockouts: [Lockout]

    public init(lockouts: [Lockout]) { self.lockouts = lockouts }
}

/// Answer of `DELETE /v1/lockouts`.
public struct LockoutsCleared: Codable, Sendable, Equatable {
    /// Locks that ended.
    public var cleared: Int

    public init(cleared: Int) { self.cleared = cleared }
}
