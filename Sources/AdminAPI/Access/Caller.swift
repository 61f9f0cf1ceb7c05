import Credentials

/// Who makes a request, and what they may do.
struct Caller: Sendable, Equatable {
    /// For logs, and for what belongs to a caller: the name of a token, or a word in parentheses that
    /// no token can have as its name.
    let name: String
    let scopes: TokenScopes

    /// The token of `admin.token` or `HERMES_ADMIN_TOKEN`.
    static let admin = Caller(name: TokenName.admin.text, scopes: .admin)
    /// Whoever may open the socket's file.
    static let unixSocket = Caller(name: "(unix socket)", scopes: .admin)
}
