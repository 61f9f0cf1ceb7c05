import Synchronization

/// Checks passwords in full, and remembers for a while which were right, so that a client that comes back
/// does not cost a memory-hard hash each time.
///
/// Only successes are remembered, so a guess costs what it cost before; and they are forgotten when the
/// users change.
package final class RememberingVerifier: Sendable {
    /// Milliseconds of a clock that never goes back.
    package typealias Clock = @Sendable () -> UInt64

    private struct State {
        var verifier: PasswordVerifier
        var recent: RecentPasswords
        /// Counts the verifiers, so that a check that began with a former one is not remembered.
        var generation: UInt64 = 0
    }

    private let key = PasswordTag.Key()
    private let clock: Clock
    private let state: Mutex<State>

    package init(_ verifier: PasswordVerifier, clock: @escaping Clock) {
        self.clock = clock
        state = Mutex(State(verifier: verifier, recent: RecentPasswords()))
    }

    /// The users from now on; all that is remembered is forgotten if they are others than before.
    package func use(_ verifier: PasswordVerifier) {
        state.withLock { state in
            guard verifier != state.verifier else { return }
            state.verifier = verifier
            state.recent.removeAll()
            state.generation += 1
        }
    }

    /// True when a full check found this password right a short while ago; false says nothing. Takes
    /// microseconds, and as long for a user that is not remembered.
    package func recall(userName: [UInt8], password: [UInt8]) -> Bool {
        guard let tag = PasswordTag(password, key) else { return false }
        return state.withLock {
            $0.recent.contains(tag, of: userName, atMilliseconds: clock())
        }
    }

    /// A full check: as ``PasswordVerifier/verify(userName:password:)``.
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
