import BrokerCore
import Synchronization
import Threads

/// Checks passwords on a thread of its own: a memory-hard hash takes tens of milliseconds, which no
/// other client may feel.
///
/// Passwords that were right a short while ago are answered first, between two full checks, so that
/// clients that come back do not wait behind strangers that guess. Both queues are bounded, and what
/// has no place in them is answered at once.
package final class Authenticator: Sendable {
    /// Requests that may wait to be looked at, which takes microseconds each and happens at the latest
    /// when the check under way has ended.
    package static let arrivedCapacity = 8_192

    private let arrived: WorkQueue<AuthenticationRequest>
    private let arrivedCount = Atomic<Int>(0)
    private let waiting = Atomic<Int>(0)
    private let isStopped = Atomic<Bool>(false)
    private let check: PasswordCheck
    private let answer: @Sendable (AuthenticationRequest, PasswordCheck.Outcome) -> Void

    /// `answer` is called on the authenticator's thread, once for each request that was accepted, unless
    /// ``stop()`` comes first.
    package init(
        _ check: PasswordCheck,
        answer: @escaping @Sendable (AuthenticationRequest, PasswordCheck.Outcome) -> Void
    ) throws {
        self.check = check
        self.answer = answer
        arrived = try WorkQueue(name: "hermes-auth")
        try WorkerThread.start(name: "hermes-auth") { self.run() }
    }

    /// False when too many wait already; called by one thread.
    package func submit(_ request: AuthenticationRequest) -> Bool {
        guard arrivedCount.load(ordering: .relaxed) < Self.arrivedCapacity else { return false }
        arrivedCount.add(1, ordering: .relaxed)
        return arrived.post(request)
    }

    /// Requests whose check has not begun.
    package var waitingCount: Int {
        arrivedCount.load(ordering: .relaxed) + waiting.load(ordering: .relaxed)
    }

    /// Lets the thread end; requests that wait are dropped.
    package func stop() {
        isStopped.store(true, ordering: .relaxed)
        arrived.close()
    }

    private func run() {
        var queue = PasswordQueue()
        while let requests = arrived.takeAll(waitMilliseconds: queue.isEmpty ? -1 : 0) {
            for request in requests {
                guard !isStopped.load(ordering: .relaxed) else { return }
                recall(request, or: &queue)
            }
            guard !isStopped.load(ordering: .relaxed), let request = queue.removeFirst() else {
                continue
            }
            waiting.store(queue.count, ordering: .relaxed)
            answer(request, check.verify(request.userName, request.password) ? .right : .wrong)
        }
    }

    private func recall(_ request: AuthenticationRequest, or queue: inout PasswordQueue) {
        arrivedCount.subtract(1, ordering: .relaxed)
        if check.recall(request.userName, request.password) {
            answer(request, .right)
        } else {
            let displaced = queue.append(request)
            waiting.store(queue.count, ordering: .relaxed)
            if let displaced { answer(displaced, .busy) }
        }
    }
}
