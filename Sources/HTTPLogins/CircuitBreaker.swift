/// Stops asking a service that fails, and finds out by single questions whether it works again.
///
///     closed ── failures in a row ──> open ── pause is over ──> probing ── answer ──> closed
///                                      ^                           │
///                                      └────────── failure ────────┘
///
/// Reads no clock, so equal inputs give equal outputs.
struct CircuitBreaker: Sendable {
    typealias Time = ContinuousClock.Instant

    private enum State {
        case closed(failures: Int)
        case open(until: Time)
        /// One question is on its way.
        case probing
    }

    /// What an answer, or its failure, has changed.
    enum Change: Equatable {
        case none, opened, closed
    }

    private var state = State.closed(failures: 0)
    /// Failures in a row until it opens: 1 and more.
    var mostFailures: Int
    var pause: Duration

    init(mostFailures: Int, pause: Duration) {
        self.mostFailures = mostFailures
        self.pause = pause
    }

    var isClosed: Bool {
        if case .closed = state { true } else { false }
    }

    /// True when a question may be asked now; the outcome has to be noted.
    mutating func admits(at now: Time) -> Bool {
        switch state {
        case .closed: return true
        case .probing: return false
        case .open(let until):
            guard now >= until else { return false }
            state = .probing
            return true
        }
    }

    /// Notes an answer of the service, whatever it says.
    mutating func noteAnswer() -> Change {
        switch state {
        case .closed:
            state = .closed(failures: 0)
            return .none
        case .probing:
            state = .closed(failures: 0)
            return .closed
        case .open:
            // It was asked before it opened, and only a probe closes it.
            return .none
        }
    }

    /// Notes that a question got no answer that can be used.
    mutating func noteFailure(at now: Time) -> Change {
        switch state {
        case .closed(let failures):
            guard failures + 1 >= mostFailures else {
                state = .closed(failures: failures + 1)
                return .none
            }
            state = .open(until: now.advanced(by: pause))
            return .opened
        case .probing:
            state = .open(until: now.advanced(by: pause))
            return .none
        case .open: return .none
        }
    }
}
