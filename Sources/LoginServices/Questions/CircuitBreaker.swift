/// Stops asking a service that fails, and finds out by single questions whether it works again.
///
///     closed ── failures in a row ──> open ── pause is over ──> probing ── answer ──> closed
///                                      ^                           │
///                                      └────────── failure ────────┘
///
/// Each question belongs to an epoch, which an opening and a probe begin: outcomes of earlier ones,
/// which come late, change nothing. Reads no clock, so equal inputs give equal outputs.
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
    private var epoch: UInt64 = 0
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

    /// The epoch of a question that may be asked now, whose outcome has to be noted; `nil` when none
    /// may be.
    mutating func admit(at now: Time) -> UInt64? {
        switch state {
        case .closed: return epoch
        case .probing: return nil
        case .open(let until):
            guard now >= until else { return nil }
            state = .probing
            epoch += 1
            return epoch
        }
    }

    /// Notes an answer of the service, whatever it says.
    mutating func noteAnswer(_ questionEpoch: UInt64) -> Change {
        guard questionEpoch == epoch else { return .none }
        switch state {
        case .closed:
            state = .closed(failures: 0)
            return .none
        case .probing:
            state = .closed(failures: 0)
            return .closed
        case .open: return .none
        }
    }

    /// Notes that the service did not answer a question.
    mutating func noteFailure(_ questionEpoch: UInt64, at now: Time) -> Change {
        guard questionEpoch == epoch else { return .none }
        switch state {
        case .closed(let failures):
            guard failures + 1 >= mostFailures else {
                state = .closed(failures: failures + 1)
                return .none
            }
            state = .open(until: now.advanced(by: pause))
            epoch += 1
            return .opened
        case .probing:
            state = .open(until: now.advanced(by: pause))
            epoch += 1
            return .none
        case .open: return .none
        }
    }
}
