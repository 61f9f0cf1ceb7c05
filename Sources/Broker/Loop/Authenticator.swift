import CLinux
import Glibc
import Reactor
import Synchronization
import Threads

/// Checks passwords on a thread of its own: a memory-hard hash takes tens of milliseconds, which no
/// other client may feel.
package final class Authenticator: Sendable {
    /// True when the password is the user's; called on the authenticator's thread.
    package typealias Verify = @Sendable (_ userName: [UInt8], _ password: [UInt8]) -> Bool

    private struct State {
        var waiting: [AuthenticationRequest] = []
        var isStopped = false
    }

    /// Requests that may wait; at some 30 ms each, later ones would outlast the CONNECT deadline.
    private static let capacity = 512

    private let state = Mutex(State())
    private let verify: Verify
    private let answer: @Sendable (AuthenticationRequest, Bool) -> Void
    /// Counts waiting requests; the thread sleeps in reading it.
    private let semaphore: CInt

    /// `answer` is called on the authenticator's thread.
    package init(
        verify: @escaping Verify,
        answer: @escaping @Sendable (AuthenticationRequest, Bool) -> Void
    ) throws {
        self.verify = verify
        self.answer = answer
        semaphore = eventfd(0, CInt(EFD_SEMAPHORE | EFD_CLOEXEC))
        guard semaphore >= 0 else {
            throw SystemError(call: "eventfd", subject: "authenticator", code: errno)
        }
        try WorkerThread.start(name: "hermes-auth") { self.run() }
    }

    deinit { _ = Glibc.close(semaphore) }

    /// False when too many wait already.
    package func submit(_ request: AuthenticationRequest) -> Bool {
        let isAccepted = state.withLock { state in
            guard state.waiting.count < Self.capacity, !state.isStopped else { return false }
            state.waiting.append(request)
            return true
        }
        if isAccepted { post() }
        return isAccepted
    }

    /// Requests whose check has not begun.
    package var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Lets the thread end; requests that wait are dropped.
    package func stop() {
        state.withLock { $0.isStopped = true }
        post()
    }

    private func post() {
        var one: UInt64 = 1
        _ = Glibc.write(semaphore, &one, 8)
    }

    private func run() {
        while true {
            var counter: UInt64 = 0
            guard Glibc.read(semaphore, &counter, 8) == 8 || errno == EINTR else { return }
            let (request, isStopped) = state.withLock { state in
                (state.waiting.isEmpty ? nil : state.waiting.removeFirst(), state.isStopped)
            }
            if isStopped { return }
            guard let request else { continue }
            answer(request, verify(request.userName, request.password))
        }
    }
}
