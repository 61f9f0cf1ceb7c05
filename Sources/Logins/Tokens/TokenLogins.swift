import Authorization
import Credentials
import Synchronization

/// Verifies tokens and remembers the results; for one thread that asks, and others that change keys.
///
/// What is remembered is forgotten when keys or policy change, and a check that began before such a
/// change is not remembered.
package final class TokenLogins: Sendable {
    private struct State {
        var verifier: TokenVerifier
        var remembered: RememberedTokens
        /// Allowances in use, so that clients with the same lists share one.
        var allowances: SharedAllowances
        var generation: UInt64 = 0
    }

    /// The most memory of remembered results: some 80,000 tokens.
    package static let rememberedBytes = 16 << 20

    private let state: Mutex<State>

    package init(_ verifier: TokenVerifier, rememberedBytes: Int = TokenLogins.rememberedBytes) {
        state = Mutex(
            State(
                verifier: verifier, remembered: RememberedTokens(mostBytes: rememberedBytes),
                allowances: SharedAllowances()))
    }

    /// Takes other keys or another policy; false when they are the same.
    @discardableResult
    package func use(_ verifier: TokenVerifier) -> Bool {
        state.withLock { state in
            guard verifier != state.verifier else { return false }
            state.verifier = verifier
            state.remembered = state.remembered.emptied()
            state.generation += 1
            return true
        }
    }

    package var verifier: TokenVerifier { state.withLock { $0.verifier } }

    /// Tokens whose results are remembered.
    package var rememberedCount: Int { state.withLock { $0.remembered.count } }

    /// The result of a token that was verified before and is valid at this time in UNIX seconds.
    package func recall(_ token: [UInt8], now: Int64) -> TokenLogin? {
        guard token.count <= TokenVerifier.longestToken else { return nil }
        let digest = SHA256Digest(of: token)
        return state.withLock { $0.remembered.find(digest, now: now) }
    }

    /// Verifies in full, at a time in UNIX seconds.
    package func verify(_ token: [UInt8], now: Int64) throws(TokenRefusal) -> TokenLogin {
        let (verifier, generation) = state.withLock { ($0.verifier, $0.generation) }
        var login = try verifier.verify(token, now: now)
        let digest = SHA256Digest(of: token)
        state.withLock { state in
            if let allowance = login.allowance {
                login.allowance = state.allowances.shared(allowance)
            }
            guard state.generation == generation else { return }
            state.remembered.insert(login, digest)
        }
        return login
    }
}
