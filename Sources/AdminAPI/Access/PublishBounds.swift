import BrokerAPI
import Credentials
import PlainText
import Synchronization

/// Holds callers to the bounds of their tokens, on every route.
final class PublishBounds: Sendable {
    /// Rates that are remembered at a time: more than there are tokens.
    private static let maximumRates = 2 * TokenFile.maximumCount

    private let counters: AdminCounters
    /// For the name of a token, when it has its whole rate again: a token bucket of one period.
    private let wholeAgain = Mutex([String: ContinuousClock.Instant]())

    init(counters: AdminCounters) {
        self.counters = counters
    }

    /// Refuses a token that is bound to topics on a route that concerns none.
    ///
    /// - Throws: ``Problem`` (403).
    func admit(_ caller: Caller?, to route: Route) throws(Problem) {
        guard let caller, case .scope(_, let topics, _) = route.access else { return }
        switch topics {
        case .checked, .filtered, .untouched: return
        case .refused: break
        }
        guard !caller.bounds.topics.isEmpty else { return }
        counters.count(.topicNotAllowed)
        throw Self.boundToken(caller)
    }

    /// Counts a request, on a route that says so.
    ///
    /// - Throws: ``Problem`` (429) above the rate of the caller's token.
    func charge(_ caller: Caller?, for route: Route) throws(Problem) {
        guard case .scope(_, _, let rate) = route.access else { return }
        switch rate {
        case .messages, .untouched: return
        case .requests: break
        }
        if let problem = charge(caller) { throw problem }
    }

    private static func boundToken(_ caller: Caller) -> Problem {
        Problem(
            .boundToken,
            "The token \"\(caller.name)\" is bound to topics, and this request concerns what lies "
                + "on none, such as clients, devices or tags.",
            fix: "Use a token without topics; hermesctl tokens create NAME --scope SCOPE makes one."
        )
    }

    /// - Throws: ``Problem`` (403) for a topic name outside the filters of the caller's token.
    func allow(_ topic: [UInt8], for caller: Caller?) throws(Problem) {
        guard let caller, !caller.bounds.allow(topic) else { return }
        counters.count(.topicNotAllowed)
        let topics = caller.bounds.topics.map { "\"\($0.text.visible())\"" }
            .joined(separator: ", ")
        throw Problem(
            .topicNotAllowed,
            "The token \"\(caller.name)\" is bound to \(topics); the topic name is "
                + "\"\(String(decoding: topic, as: UTF8.self).visible())\".",
            field: "topic",
            fix: "Use a topic that one of them matches, or a token with other topics; "
                + "hermesctl tokens create NAME --topics FILTER makes one.")
    }

    /// True when the caller's token has a rate.
    func hasRate(_ caller: Caller?) -> Bool { caller?.bounds.rate != nil }

    /// Counts one message against the caller's rate.
    ///
    /// - Returns: Why it may not be published now; `nil` if it may.
    func charge(_ caller: Caller?, at now: ContinuousClock.Instant = .now) -> Problem? {
        guard let caller, let rate = caller.bounds.rate,
            let seconds = charge(caller.name, rate, now)
        else { return nil }
        counters.count(.rateExceeded)
        return Problem(
            .rateExceeded,
            "The token \"\(caller.name)\" may publish \(rate) messages, and has done so.",
            fix: "Send this again after \(seconds) s, and fewer of them.",
            headers: [.retryAfter: "\(seconds)"])
    }

    /// Gives back what ``charge(_:at:)`` took, for a message that turned out to be a repeat.
    func refund(_ caller: Caller?, at now: ContinuousClock.Instant = .now) {
        guard let caller, let rate = caller.bounds.rate else { return }
        wholeAgain.withLock { wholeAgain in
            guard let whole = wholeAgain[caller.name] else { return }
            wholeAgain[caller.name] = max(now, whole - rate.period / rate.count)
        }
    }

    /// - Returns: Seconds until one more message may be published; `nil` if it may be at once.
    private func charge(
        _ name: String, _ rate: TokenRate, _ now: ContinuousClock.Instant
    ) -> Int? {
        wholeAgain.withLock { wholeAgain in
            if wholeAgain[name] == nil, wholeAgain.count >= Self.maximumRates {
                Self.makeRoom(&wholeAgain, now)
            }
            let charged = max(wholeAgain[name] ?? now, now) + rate.period / rate.count
            let excess = charged - now - rate.period
            guard excess > .zero else {
                wholeAgain[name] = charged
                return nil
            }
            return max(1, Int((excess / .seconds(1)).rounded(.up)))
        }
    }

    /// Forgets the tokens that have their whole rate, or the one that has it soonest.
    private static func makeRoom(
        _ wholeAgain: inout [String: ContinuousClock.Instant], _ now: ContinuousClock.Instant
    ) {
        wholeAgain = wholeAgain.filter { $0.value > now }
        guard wholeAgain.count >= maximumRates else { return }
        let soonest = wholeAgain.min { $0.value < $1.value }
        if let soonest { wholeAgain.removeValue(forKey: soonest.key) }
    }
}
