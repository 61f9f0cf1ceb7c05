import BrokerCore
import BrokerFeatures
import Synchronization
import Threads

/// Checks passwords and tokens on its own thread: Argon2 takes tens of milliseconds, a signature some
/// hundred microseconds.
///
/// What is remembered is answered first, between two full checks, so that returning clients do not
/// wait behind strangers who guess. Tokens do not wait behind more than one password. All queues are
/// bounded; overflow is answered at once.
package final class Authenticator: Sendable {
    /// Requests waiting for the cache lookup, which begins at the latest after the running check.
    package static let arrivedCapacity = 8_192

    private let arrived: WorkQueue<AuthenticationRequest>
    private let arrivedCount = Atomic<Int>(0)
    private let waiting = Atomic<Int>(0)
    private let isStopped = Atomic<Bool>(false)
    private let check: LoginCheck
    private let answer: @Sendable (AuthenticationRequest, LoginAnswer) -> Void

    /// Calls `answer` once per accepted request, unless ``stop()`` comes first: on its thread, or on
    /// that of somebody else who was asked.
    package init(
        _ check: LoginCheck,
        answer: @escaping @Sendable (AuthenticationRequest, LoginAnswer) -> Void
    ) throws {
        self.check = check
        self.answer = answer
        arrived = try WorkQueue(name: "hermes-auth")
        try WorkerThread.start(name: "hermes-auth", urgency: .patient) { self.run() }
    }

    /// Adds a request; false when too many wait. Called by one thread only.
    package func submit(_ request: AuthenticationRequest) -> Bool {
        guard arrivedCount.load(ordering: .relaxed) < Self.arrivedCapacity else { return false }
        arrivedCount.add(1, ordering: .relaxed)
        return arrived.post(request)
    }

    /// Requests whose full check has not begun.
    package var waitingCount: Int {
        arrivedCount.load(ordering: .relaxed) + waiting.load(ordering: .relaxed)
    }

    /// Ends the thread; waiting requests are dropped.
    package func stop() {
        isStopped.store(true, ordering: .relaxed)
        arrived.close()
    }

    /// Tokens that are verified between two passwords, about as much work as one of these.
    private static let tokensInARow = 128

    private func run() {
        var tokens = LoginQueue(capacity: LoginQueue.mostTokens)
        var passwords = LoginQueue(capacity: LoginQueue.mostPasswords)
        while let requests = arrived.takeAll(
            waitMilliseconds: tokens.isEmpty && passwords.isEmpty ? -1 : 0)
        {
            for request in requests {
                guard !isStopped.load(ordering: .relaxed) else { return }
                recall(request, &tokens, &passwords)
            }
            verify(&tokens, atMost: Self.tokensInARow)
            guard !isStopped.load(ordering: .relaxed) else { return }
            if let request = passwords.removeFirst() {
                waiting.store(tokens.count + passwords.count, ordering: .relaxed)
                answer(request, check.verify(request))
            }
        }
    }

    private func recall(
        _ request: AuthenticationRequest, _ tokens: inout LoginQueue, _ passwords: inout LoginQueue
    ) {
        arrivedCount.subtract(1, ordering: .relaxed)
        let displaced: AuthenticationRequest?
        switch check.recall(request) {
        case .known(let known):
            answer(request, known)
            return
        case .quick:
            // So many that come at once are no reason to turn any away.
            if tokens.count == tokens.capacity { verify(&tokens, atMost: Self.tokensInARow) }
            displaced = tokens.append(request)
        case .slow: displaced = passwords.append(request)
        case .elsewhere:
            ask(request)
            return
        }
        waiting.store(tokens.count + passwords.count, ordering: .relaxed)
        if let displaced { answer(displaced, .busy(detail: nil)) }
    }

    private func ask(_ request: AuthenticationRequest) {
        guard let ask = check.ask else {
            preconditionFailure("a login is to be asked about, and there is nobody to ask")
        }
        ask(request) { [self] asked in
            guard !isStopped.load(ordering: .relaxed) else { return }
            switch asked {
            case .decided(let decided): answer(request, decided)
            case .passed(let sources):
                var next = request
                next.sourcesPassed = sources
                arrivedCount.add(1, ordering: .relaxed)
                if !arrived.post(next) { arrivedCount.subtract(1, ordering: .relaxed) }
            }
        }
    }

    private func verify(_ tokens: inout LoginQueue, atMost count: Int) {
        for _ in 0..<count {
            guard !isStopped.load(ordering: .relaxed), let request = tokens.removeFirst() else {
                return
            }
            answer(request, check.verify(request))
        }
    }
}
