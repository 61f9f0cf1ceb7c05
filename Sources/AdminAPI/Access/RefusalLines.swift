/// Which refused requests the log tells of; performs no I/O and reads no clock.
///
/// One a minute for each address, reason and token, so that no reason hides another. Over all
/// addresses one a second for each reason, so that many of them do not fill the disk either; an
/// address that comes within that second has its line as soon as it fails again.
struct RefusalLines {
    /// A line that is due, with what was not logged before it.
    struct Line: Equatable {
        /// Requests of the same address, reason and token, since their last line.
        var suppressed: Int
        /// Requests of any address with the same reason, since the last line of that reason.
        var suppressedOfAll: Int
    }

    /// What a line speaks of.
    struct Subject: Hashable {
        var reason: AdminCounters.Refusal
        var address: PeerAddress
        /// The name of a token that is known here; `nil` for none and for an unknown one.
        var token: String?
    }

    private struct Record {
        var nextLine: ContinuousClock.Instant
        var lastSeen: ContinuousClock.Instant
        var suppressed = 0
    }

    private struct Total {
        var nextLine: ContinuousClock.Instant
        var suppressed = 0
    }

    /// More subjects at a time than this, and the one longest unseen is forgotten.
    static let maximumSubjects = 1_024
    private static let interval = Duration.seconds(60)
    private static let totalInterval = Duration.seconds(1)

    private var records: [Subject: Record] = [:]
    private var totals: [AdminCounters.Refusal: Total] = [:]

    /// A request was refused.
    ///
    /// - Returns: The line to write; `nil` for none.
    mutating func note(_ subject: Subject, at now: ContinuousClock.Instant) -> Line? {
        var record = records[subject] ?? Record(nextLine: now, lastSeen: now)
        var total = totals[subject.reason] ?? Total(nextLine: now)
        record.lastSeen = now
        var line: Line?
        if now >= record.nextLine, now >= total.nextLine {
            line = Line(suppressed: record.suppressed, suppressedOfAll: total.suppressed)
            record = Record(nextLine: now + Self.interval, lastSeen: now)
            total = Total(nextLine: now + Self.totalInterval)
        } else {
            record.suppressed += 1
            total.suppressed += 1
        }
        if records[subject] == nil, records.count >= Self.maximumSubjects { forgetOldest() }
        records[subject] = record
        totals[subject.reason] = total
        return line
    }

    private mutating func forgetOldest() {
        let oldest = records.min { $0.value.lastSeen < $1.value.lastSeen }
        if let oldest { records.removeValue(forKey: oldest.key) }
    }
}
