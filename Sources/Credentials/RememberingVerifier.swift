import Synchronization

/// Checks passwords in full, and remembers for a while which were right, so that a client that
/// reconnects does not cost a memory-hard hash each time.
///
/// Only successes are remembered, so a guess costs as much as before. They are forgotten when the
/// users change.
package final class RememberingVerifier: Sendable {
    /// Milliseconds of a clock that never goes back.
    package typealias Clock = @Sendable () -> UInt64

    private struct State {
        var verifier: PasswordVerifier
        var recent: RecentPasswords
        /// Numbers the verifiers, so that a check under an earlier one is not cached.
        var generation: UInt64 = 0
    }

    private let key = PasswordTag.Key()
    private let clock: Clock
    private let state: Mutex<State>

    package init(_ verifier: PasswordVerifier, clock: @escaping Clock) {
        self.clock = clock
        state = Mutex(State(verifier: verifier, recent: RecentPasswords()))
    }

    /// Replaces the users, and forgets the remembered passwords if the users differ.
    package func use(_ verifier: PasswordVerifier) {
        state.withLock { state in
            guard verifier != state.verifier else { return }
            state.verifier = verifier
            state.recent.removeAll()
            state.generation += 1
        }
    }

    /// As ``PasswordVerifier/knows(_:)``.
    package func knows(_ userName: [UInt8]) -> Bool {
        state.withLock { $0.verifier.knows(userName) }
    }

    /// True if a full check lately found this password right; false tells nothing. Takes
    /// microseconds, and as long for a user that is not remembered.
    package func recall(userName: [UInt8], password: [UInt8]) -> Bool {
        guard let tag = PasswordTag(password, key) else { return false }
        return state.withLock {
            $0.recent.contains(tag, of: userName, atMilliseconds: clock())
        }
    }

    /// Checks in full, as ``PasswordVerifier/verify(userName:password:)`` does.
    package func verify(userName: [UInt8], password: [UInt8]) -> Bool {
        let (verifier, generation) = state.withLock { ($0.verifier, $0.generation) }
        guard verifier.verify(userName: userName, password: password) else { return false }
        guard let tag = PasswordTag(password, key) else { return true }
        state.withLock { state in
            guard state.generation == generation else { return }
            state.recent.insert(tag, of: userName, atMilliseconds: clock())
        }
        return true
    }
}
