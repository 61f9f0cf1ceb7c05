import PlainText

/// The result of one attempt to send a document.
package enum WebhookReply: Sendable, Equatable {
    /// A status of 200 to 299: the receiver has taken it.
    case accepted
    /// Any other status.
    case status(Int, retryAfter: Duration?)
    /// No answer; the reason is for the log.
    case noAnswer(String)

    /// Reads an answer's status and its header `Retry-After`, which is a number of seconds or a date
    /// (RFC 9110, section 10.2.3).
    ///
    /// - Parameters:
    ///   - status: The answer's status.
    ///   - retryAfter: The header's value; `nil` without it.
    ///   - date: The answer's header `Date`: the receiver's own clock, by which it chose the time.
    ///   - now: UNIX seconds of this machine, for an answer without `Date`.
    init(status: Int, retryAfter: String?, date: String? = nil, now: Int64) {
        if (200..<300).contains(status) {
            self = .accepted
            return
        }
        let wait = retryAfter.flatMap { Self.seconds($0, date, now: now) }
        self = .status(status, retryAfter: wait.map { .seconds($0) })
    }

    /// A wait longer than this is this one; every pause of a sender is shorter.
    private static let longestWait: Int64 = 1 << 31

    private static func seconds(_ retryAfter: String, _ date: String?, now: Int64) -> Int64? {
        let digits = retryAfter.utf8
        if !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) {
            return digits.reduce(0) { min($0 * 10 + Int64($1 - 0x30), longestWait) }
        }
        guard let time = HTTPDateText.parse(retryAfter, now: now) else { return nil }
        let sent = date.flatMap { HTTPDateText.parse($0, now: now) } ?? now
        return min(max(time - sent, 0), longestWait)
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
