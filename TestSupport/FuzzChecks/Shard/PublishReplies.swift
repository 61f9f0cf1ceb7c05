import BrokerAPI

/// The shard's answers to the operator's publishes.
///
/// Unchecked: the shard calls back on the one thread that drives it, within its own methods.
final class PublishReplies: @unchecked Sendable {
    struct Answer {
        /// `nil` for a message without a serial number.
        let serial: Int?
        /// `nil` when the shard stopped before it could answer.
        let counts: PublishCounts?
    }

    private var replies: [Answer] = []
    /// Publishes without an answer.
    private(set) var open = 0

    /// Expects one more answer; the closure takes it.
    func expect(_ serial: Int?) -> Reply<PublishOutcome> {
        open += 1
        return { [self] answer in
            open -= 1
            let counts: PublishCounts? =
                if case .success(.published(let counts)) = answer { counts } else { nil }
            replies.append(Answer(serial: serial, counts: counts))
        }
    }

    func take() -> [Answer] {
        defer { replies.removeAll() }
        return replies
    }
}
