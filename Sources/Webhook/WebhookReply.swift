/// The result of one attempt to send a document.
package enum WebhookReply: Sendable, Equatable {
    /// A status of 200 to 299: the receiver has taken it.
    case accepted
    /// Any other status.
    case status(Int, retryAfter: Duration?)
    /// No answer; the reason is for the log.
    case noAnswer(String)

    /// Reads an answer's status and its header `Retry-After`, of which only the form in seconds
    /// counts.
    init(status: Int, retryAfter: String?) {
        if (200..<300).contains(status) {
            self = .accepted
            return
        }
        let seconds = retryAfter.flatMap { text in
            text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int32(text) : nil
        }
        self = .status(status, retryAfter: seconds.map { .seconds($0) })
    }

    /// What came of an attempt, as a label of the metric.
    enum Outcome: String, Sendable, CaseIterable {
        case delivered
        /// The receiver cannot take the events now.
        case unavailable
        /// The receiver will not take the events unless somebody corrects it or the configuration.
        case refused
        case unreachable
    }

    var outcome: Outcome {
        switch self {
        case .accepted: .delivered
        case .status(let status, _):
            // Timeout, too early, too many requests: answers that pass by themselves.
            status >= 500 || [408, 425, 429].contains(status) ? .unavailable : .refused
        case .noAnswer: .unreachable
        }
    }

    /// The time that the receiver asks to be left alone.
    package var retryAfter: Duration? {
        guard case .status(_, let retryAfter) = self else { return nil }
        return retryAfter
    }

    /// The reason of a failure, for log and status.
    package var reason: String {
        switch self {
        case .accepted: "accepted"
        case .status(let status, _) where (300..<400).contains(status):
            "status \(status): a redirection, which is not followed"
        case .status(let status, _): "status \(status)"
        case .noAnswer(let reason): reason
        }
    }
}
