import BrokerAPI
import Credentials

/// The caller of a request, and its rights.
struct Caller: Sendable, Equatable {
    /// The name of the token, or a word in parentheses, which no token can have. For the log and
    /// for data that belongs to a caller.
    let name: String
    let scopes: TokenScopes
    let bounds: TokenBounds
    /// The owner of what the caller stores.
    let owner: OwnerID

    /// The bearer of a token.
    init(_ entry: TokenFile.Entry) {
        name = entry.name.text
        scopes = entry.scopes
        bounds = entry.bounds
        owner = OwnerID(rawValue: entry.name.digest)
    }

    /// A caller without an entry. It makes the digest of the name, so requests share one.
    init(name: String, scopes: TokenScopes, bounds: TokenBounds = .none) {
        self.name = name
        self.scopes = scopes
        self.bounds = bounds
        owner = OwnerID(rawValue: TokenName.digest(of: name))
    }

    /// An identifier as this caller means it: its own, or else another owner's.
    func owned(_ name: String) -> OwnedName { OwnedName(Array(name.utf8), of: owner) }

    /// The token of `admin.token` or `HERMES_ADMIN_TOKEN`.
    static let admin = Caller(name: TokenName.admin.text, scopes: .admin)
    /// Any process that may open the socket's file.
    static let unixSocket = Caller(name: "(unix socket)", scopes: .admin)
}
