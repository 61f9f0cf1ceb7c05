/// Why nothing is sent for a while.
struct SenderPause: Equatable, Sendable {
    enum Cause: Sendable {
        case credentials, tooManyTokens, badTokens, noToken
    }

    let cause: Cause
    /// In milliseconds of the monotonic clock.
    let until: UInt64
    let words: String
}

/// Decides from the answers when the sender has to pause. Times are milliseconds of the monotonic
/// clock.
struct SenderHealth {
    private static let window: UInt64 = 60_000
    /// Answers of bad tokens in a window from which on their share counts.
    private static let leastBad = 100
    private static let badShare = 0.05
    private static let firstPause: UInt64 = 60_000
    private static let longestPause: UInt64 = 600_000

    private(set) var pause: SenderPause?
    private var windowStart: UInt64 = 0
    private var answers = 0
    private var bad = 0
    /// Pauses for the credentials in a row.
    private var refusals: UInt64 = 0

    /// True while nothing may be sent.
    mutating func isPaused(at now: UInt64) -> Bool {
        guard let pause else { return false }
        if pause.until <= now { self.pause = nil }
        return self.pause != nil
    }

    mutating func note(_ answer: AppleAnswer, at now: UInt64) {
        if now >= windowStart + Self.window { (windowStart, answers, bad) = (now, 0, 0) }
        answers += 1
        if answer.status == 200 { refusals = 0 }
        if case .badDevice = answer.outcome { bad += 1 }
        switch answer.concern {
        case .credentials:
            guard pause == nil else { return }
            let length = min(Self.firstPause << min(refusals, 8), Self.longestPause)
            refusals += 1
            pause = SenderPause(
                cause: .credentials, until: now + length,
                words: "Apple refuses the key or the certificate (\(answer.word))")
        case .tooManyTokens:
            pause = SenderPause(
                cause: .tooManyTokens, until: now + Self.longestPause,
                words: "Apple has seen too many new provider tokens of this team")
        case .none, .expiredToken, .closing:
            guard pause == nil, bad >= Self.leastBad,
                Double(bad) > Double(answers) * Self.badShare
            else { return }
            pause = SenderPause(
                cause: .badTokens, until: now + Self.longestPause,
                words: "Apple does not know \(bad) of \(answers) device tokens")
            (windowStart, answers, bad) = (now + Self.longestPause, 0, 0)
        }
    }

    /// Pauses because no provider token can be made yet.
    mutating func lackToken(at now: UInt64) {
        guard pause == nil else { return }
        pause = SenderPause(
            cause: .noToken, until: now + Self.firstPause,
            words:
                "Apple takes the provider token no more, and a new one can be made later only, since this one is young"
        )
    }

    /// New credentials have been read: they are tried at once.
    mutating func forgive() {
        pause = nil
        refusals = 0
    }
}

extension SenderPause {
    /// What an operator can do.
    var hint: String {
        switch cause {
        case .credentials:
            "compare push.apns.key_id, team_id and key_file with Apple's developer site"
        case .tooManyTokens: "use one key and one broker for a team, and wait"
        case .noToken: "set this machine's clock; use one key and one broker for a team"
        case .badTokens:
            "are these tokens of the development environment, sent to production? Devices say which in their registration"
        }
    }
}
