import PlainText

/// A permission that a token can have.
package enum TokenScope: String, CaseIterable, Hashable, Sendable {
    /// Publish messages.
    case publish
    /// Read everything, and change nothing.
    case read
    /// Everything.
    case admin
}

/// The permissions of a token: at least one.
package struct TokenScopes: Hashable, Sendable, CustomStringConvertible {
    package static let admin = TokenScopes(granted: [.admin])

    private let granted: Set<TokenScope>

    /// `nil` without any scope.
    package init?(_ scopes: some Sequence<TokenScope>) {
        let granted = Set(scopes)
        if granted.isEmpty { return nil }
        self.granted = granted
    }

    private init(granted: Set<TokenScope>) {
        self.granted = granted
    }

    /// Parses `publish,read`; `nil` for an unknown or repeated word, or for none.
    package init?(parsing text: some StringProtocol) {
        var granted: Set<TokenScope> = []
        for word in text.parts(separator: ",") {
            guard let scope = TokenScope(rawValue: String(word)), granted.insert(scope).inserted
            else { return nil }
        }
        self.init(granted)
    }

    /// True if a request that needs `scope` is allowed; ``TokenScope/admin`` includes the others.
    package func grant(_ scope: TokenScope) -> Bool {
        granted.contains(scope) || granted.contains(.admin)
    }

    /// The scopes' names, always in the same order.
    package var names: [String] { TokenScope.allCases.filter(granted.contains).map(\.rawValue) }

    /// The form in the token file: `publish,read`.
    package var description: String { names.joined(separator: ",") }
}
