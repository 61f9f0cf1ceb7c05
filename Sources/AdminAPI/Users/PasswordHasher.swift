import Credentials
import NIOPosix
import Synchronization

/// Computes the hashes of new passwords, one at a time and off the HTTP thread: each takes some
/// 20 ms of a processor and 19 MiB.
final class PasswordHasher: Sendable {
    /// Hashes that may wait for their turn.
    static let mostWaiting = 64

    private struct State {
        var isBusy = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// - Throws: ``Problem`` when too many wait, or memory is short.
    func hash(_ password: String) async throws(Problem) -> PasswordHash {
        try await enter()
        defer { leave() }
        do {
            return try await NIOThreadPool.singleton.runIfActive {
                try PasswordHash(hashing: SecretBytes(copying: password.utf8))
            }
        } catch {
            throw Problem(
                .overloaded, "\(error)", fix: "Send the request again later.",
                headers: [.retryAfter: "5"])
        }
    }

    private func enter() async throws(Problem) {
        let isFull = state.withLock { $0.waiting.count >= Self.mostWaiting }
        guard !isFull else {
            throw Problem(
                .overloaded,
                "\(Self.mostWaiting) passwords wait for their hash, which is the limit.",
                fix: "Send the request again later.", headers: [.retryAfter: "5"])
        }
        await withCheckedContinuation { continuation in
            let isNow = state.withLock { state in
                if state.isBusy {
                    state.waiting.append(continuation)
                    return false
                }
                state.isBusy = true
                return true
            }
            if isNow { continuation.resume() }
        }
    }

    private func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.waiting.isEmpty else {
                state.isBusy = false
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}
