/// How often one address may fail to authenticate, and how often the log says so; performs no I/O and
/// reads no clock.
///
/// A wrong token costs its address one of `perMinute` failures, which come back evenly; an address
/// that has none left is told to wait. Whoever presents a good token is never asked here: behind one
/// address there may be a whole office, or everyone on this machine.
struct FailureBudget {
    /// What to answer, and whether to log it.
    struct Verdict: Equatable {
        /// Seconds until the address has a failure left; `nil` when it has one now.
        var retryAfterSeconds: Int?
        /// How many failures of this address were not logged since its last line; `nil` when this one
        /// is not logged either.
        var suppressed: Int?
        /// Whether to log that the address has to wait: at once, and then once a minute.
        var reportsWait = false
    }

    private struct Record {
        /// When all failures have come back; each one costs a share of a minute.
        var fullAgain: ContinuousClock.Instant
        var lastSeen: ContinuousClock.Instant
        var nextLine: ContinuousClock.Instant
        var nextWaitLine: ContinuousClock.Instant
        var suppressed = 0
    }

    /// More addresses at a time than this, and the one longest unseen is forgotten.
    static let maximumAddresses = 1_024
    private static let window = Duration.seconds(60)
    private static let logInterval = Duration.seconds(60)

    private let cost: Duration
    private var records: [PeerAddress: Record] = [:]

    /// - Parameter perMinute: 1 or more.
    init(perMinute: Int) {
        precondition(perMinute > 0, "a budget of \(perMinute) failures")
        cost = Self.window / perMinute
    }

    /// Judges a failed request.
    ///
    /// - Parameters:
    ///   - address: Where it came from.
    ///   - isGuess: False for a request without any token, which costs nothing: it tries nothing.
    ///   - now: The time.
    /// - Returns: What to answer, and whether to log it.
    mutating func judge(
        _ address: PeerAddress, isGuess: Bool, at now: ContinuousClock.Instant
    ) -> Verdict {
        var record =
            records[address]
            ?? Record(fullAgain: now, lastSeen: now, nextLine: now, nextWaitLine: now)
        var verdict = Verdict()
        if isGuess {
            let charged = max(record.fullAgain, now) + cost
            let excess = charged - now - Self.window
            if excess > .zero {
                verdict.retryAfterSeconds = max(1, Int((excess / .seconds(1)).rounded(.up)))
                if now >= record.nextWaitLine {
                    verdict.reportsWait = true
                    record.nextWaitLine = now + Self.logInterval
                }
            } else {
                record.fullAgain = charged
            }
        }
        if now >= record.nextLine {
            verdict.suppressed = record.suppressed
            record.suppressed = 0
            record.nextLine = now + Self.logInterval
        } else {
            record.suppressed += 1
        }
        record.lastSeen = now
        if records[address] == nil, records.count >= Self.maximumAddresses { forgetOldest() }
        records[address] = record
        return verdict
    }

    private mutating func forgetOldest() {
        let oldest = records.min { $0.value.lastSeen < $1.value.lastSeen }
        if let oldest { records.removeValue(forKey: oldest.key) }
    }
}
