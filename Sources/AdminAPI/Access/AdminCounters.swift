import BrokerAPI
import Synchronization

/// Counters of the admin plane since the start, for any thread.
final class AdminCounters: Sendable {
    /// The reason for rejecting a request; the raw value is the metric's label.
    enum Refusal: String, CaseIterable {
        case missingToken = "missing_token"
        case unknownToken = "unknown_token"
        case expiredToken = "expired_token"
        case missingScope = "missing_scope"
        case tooManyFailures = "too_many_failures"
        case topicNotAllowed = "topic_not_allowed"
        case rateExceeded = "rate_exceeded"
    }

    let requests = RequestCounters()
    private let refusals = Mutex([Refusal: UInt64]())
    private let connectionsRefused = Atomic<UInt64>(0)
    private let connectionsDisplaced = Atomic<UInt64>(0)

    func count(_ refusal: Refusal) {
        refusals.withLock { $0[refusal, default: 0] += 1 }
    }

    /// A connection was refused, because none of its listener's could make room for it.
    func countConnectionRefused() {
        connectionsRefused.add(1, ordering: .relaxed)
    }

    /// A connection was closed to make room for another.
    func countConnectionDisplaced() {
        connectionsDisplaced.add(1, ordering: .relaxed)
    }

    /// All counters, for every reason.
    var figures: AdminFigures {
        let counts = refusals.withLock { $0 }
        var figures = AdminFigures()
        figures.requests = requests.figures
        figures.connectionsRefused = connectionsRefused.load(ordering: .relaxed)
        figures.connectionsDisplaced = connectionsDisplaced.load(ordering: .relaxed)
        figures.refused = Refusal.allCases.map {
            BrokerFigures.Count($0.rawValue, counts[$0] ?? 0)
        }
        return figures
    }
}
