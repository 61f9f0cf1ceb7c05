import BrokerAPI
import Synchronization

/// Counts what came of the requests, for any thread.
final class WebhookCounters: Sendable {
    private struct State {
        var events: [WebhookReply.Outcome: UInt64] = [:]
        var lastSuccessAtMs: Int64?
        var failure: String?
    }

    private let state = Mutex(State())

    /// Counts an attempt with that many events; `now` is the UNIX time in seconds.
    func count(_ reply: WebhookReply, events: Int, now: Int64) {
        state.withLock { state in
            state.events[reply.outcome, default: 0] += UInt64(events)
            if reply == .accepted {
                state.lastSuccessAtMs = now * 1_000
                state.failure = nil
            } else {
                state.failure = reply.reason
            }
        }
    }

    var figures: WebhookFigures {
        let state = state.withLock { $0 }
        var events: [String: UInt64] = [:]
        for result in WebhookReply.Outcome.allCases {
            events[result.rawValue] = state.events[result] ?? 0
        }
        return WebhookFigures(
            events: events, lastSuccessAtMs: state.lastSuccessAtMs, failure: state.failure)
    }
}
