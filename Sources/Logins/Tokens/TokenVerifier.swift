import Authorization
import PlainText

/// What a verified token proves.
package struct TokenLogin: Sendable {
    package let userName: String
    /// UNIX seconds at which the token ends, leeway included: until then it is accepted; `nil` for
    /// one without an end.
    package let endsAt: Int64?
    /// The token's own end, for messages.
    package let expiresAt: Int64?
    /// The topics that the token allows; `nil` for a token that leaves all to the access rules.
    package internal(set) var allowance: TopicAllowance?
    /// The name of its key and the algorithm, for `hermesctl auth check`.
    package let keyIdentifier: ForeignText?
    package let algorithm: TokenAlgorithm
}

/// Verifies tokens in full: form, key, signature, then claims. Holds nothing that a token changes.
package struct TokenVerifier: Sendable, Equatable {
    package let keys: KeySet
    package let policy: TokenPolicy

    /// The longest token in bytes; a longer one is refused unread.
    package static let longestToken = SignedToken.longest

    package init(keys: KeySet, policy: TokenPolicy) {
        self.keys = keys
        self.policy = policy
    }

    /// True for a password that should be judged as a token. See ``SignedToken/resembles(_:)``.
    package static func isToken(_ password: [UInt8]) -> Bool { SignedToken.resembles(password) }

    /// Verifies a token at a time in UNIX seconds. Costs 5 to 150 microseconds, by algorithm.
    ///
    /// - Throws: ``TokenRefusal``.
    package func verify(_ token: [UInt8], now: Int64) throws(TokenRefusal) -> TokenLogin {
        let token = try SignedToken(token)
        let key = try keys.key(for: token.header)
        guard key.verifies(token.signature, of: token.signedBytes) else { throw .badSignature }
        let claims = try TokenClaims(token.claims, policy, now: now)
        return TokenLogin(
            userName: claims.userName,
            endsAt: claims.expiresAt.map { $0 + policy.leewaySeconds },
            expiresAt: claims.expiresAt, allowance: try Self.allowance(of: claims),
            keyIdentifier: token.header.keyIdentifier, algorithm: key.algorithm)
    }

    private static func allowance(of claims: TokenClaims) throws(TokenRefusal) -> TopicAllowance? {
        guard claims.publish != nil || claims.subscribe != nil else { return nil }
        do throws(TopicAllowance.Malformed) {
            return try TopicAllowance(publish: claims.publish, subscribe: claims.subscribe)
        } catch {
            throw .claim(error.complaint)
        }
    }
}
