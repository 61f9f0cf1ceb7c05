import BrokerAPI
import Credentials

/// The caller of a request, and its rights.
struct Caller: Sendable, Equatable {
    /// The name of the token, or a word in parentheses, which no token can have. For the log and
    /// for data that belongs to a caller.
    let name: String
    let scopes: TokenScopes
    var bounds = TokenBounds.none

    /// The owner of what the caller stores.
    var owner: OwnerID {
        OwnerID(rawValue: UInt64(truncatingIfNeeded: SHA256Digest(of: name.utf8).leading))
    }

    /// An identifier as this caller means it: its own, or else another owner's.
    func owned(_ name: String) -> OwnedName { OwnedName(Array(name.utf8), of: owner) }

    /// The token of `admin.token` or `HERMES_ADMIN_TOKEN`.
    static let admin = Caller(name: TokenName.admin.text, scopes: .admin)
    /// Any process that may open the socket's file.
    static let unixSocket = Caller(name: "(unix socket)", scopes: .admin)
}
