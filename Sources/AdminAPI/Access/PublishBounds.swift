import BrokerAPI
import Credentials
import PlainText
import Synchronization

/// Holds callers to the bounds of their tokens, on every route that publishes.
final class PublishBounds: Sendable {
    /// Rates that are remembered at a time: more than there are tokens.
    private static let maximumRates = 2 * TokenFile.maximumCount

    private let counters: AdminCounters
    /// For the name of a token, when it has its whole rate again: a token bucket of one period.
    private let wholeAgain = Mutex([String: ContinuousClock.Instant]())

    init(counters: AdminCounters) {
        self.counters = counters
    }

    /// Counts one message against the caller's rate.
    ///
    /// - Throws: ``Problem``: 403 for a topic name outside the token's filters, 429 above its rate.
    func admit(
        _ publication: Publication, of caller: Caller?, at now: ContinuousClock.Instant = .now
    ) throws(Problem) {
        guard let caller, caller.bounds != .none else { return }
        let bounds = caller.bounds
        guard bounds.allow(publication.topic) else {
            counters.count(.topicNotAllowed)
            let topics = bounds.topics.map { "\"\($0.text.visible())\"" }.joined(separator: ", ")
            let topic = String(decoding: publication.topic, as: UTF8.self)
            throw Problem(
                .topicNotAllowed,
                "The token \"\(caller.name)\" may publish to \(topics); the topic name is "
                    + "\"\(topic.visible())\".",
                field: "topic",
                fix:
                    "Publish to a topic that one of them matches, or use a token with other topics; "
                    + "hermesctl tokens create NAME --topics FILTER makes one.")
        }
        guard let rate = bounds.rate, let seconds = charge(caller.name, rate, now) else { return }
        counters.count(.rateExceeded)
        throw Problem(
            .rateExceeded,
            "The token \"\(caller.name)\" may publish \(rate) messages, and has done so.",
            fix: "Send the message again after the seconds named in Retry-After (\(seconds)), and "
                + "fewer of them.",
            headers: [.retryAfter: "\(seconds)"])
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
