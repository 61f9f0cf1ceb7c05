import BrokerAPI
import Credentials

extension AdminClient {
    /// Users of the broker's password file, at most so many.
    func users(limit: Int) async throws(CommandFailure) -> UserPage {
        let (users, next) = try await gather(["v1", "users"], limit: limit) { (page: UserPage) in
            (page.users, page.next)
        }
        return UserPage(users: users, next: next)
    }

    /// Adds a user, or gives it another password; with `disconnects` its connections close.
    func setUser(
        _ name: UserName, to hash: PasswordHash, disconnects: Bool
    ) async throws(CommandFailure) -> Answer<UserSet> {
        try await send(
            .put, ["v1", "users", name.text], query: Self.disconnect(disconnects),
            json: NewPassword(hash: hash.encoded))
    }

    func removeUser(
        _ name: UserName, disconnects: Bool
    ) async throws(CommandFailure) -> Answer<UserRemoved> {
        try await delete(["v1", "users", name.text], query: Self.disconnect(disconnects))
    }

    /// Gives the broker the users that a descriptor brings, a JSON object on each line; `take` gets
    /// the results in parts.
    func importUsers(
        from descriptor: CInt, named name: String,
        _ take: (ArraySlice<UInt8>) throws(CommandFailure) -> Void
    ) async throws(CommandFailure) {
        try await stream(["v1", "users", "import"], from: descriptor, named: name, take)
    }

    private static func disconnect(_ disconnects: Bool) -> [(name: String, value: String)] {
        disconnects ? [(name: "disconnect", value: "true")] : []
    }
}

/// Body of `PUT /v1/users/{name}`.
private struct NewPassword: Encodable, Sendable {
    let hash: String

    enum CodingKeys: String, CodingKey {
        case hash = "password_hash"
    }
}
