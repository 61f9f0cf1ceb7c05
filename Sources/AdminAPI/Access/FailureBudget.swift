import Addresses

/// How often one address may fail to authenticate; performs no I/O and reads no clock.
///
/// A wrong token costs its address one of `perMinute` failures, which come back evenly; an address
/// that has none left is told to wait. Whoever presents a good token is never asked here: behind one
/// address there may be a whole office, or everyone on this machine.
struct FailureBudget {
    private struct Record {
        /// When all failures have come back; each one costs a share of a minute.
        var fullAgain: ContinuousClock.Instant
        var lastSeen: ContinuousClock.Instant
    }

    /// More addresses at a time than this, and the one longest unseen is forgotten.
    static let maximumAddresses = 1_024
    private static let window = Duration.seconds(60)

    private let cost: Duration
    private var records: [IPNetwork: Record] = [:]

    /// - Parameter perMinute: 1 or more.
    init(perMinute: Int) {
        precondition(perMinute > 0, "a budget of \(perMinute) failures")
        cost = Self.window / perMinute
    }

    /// Takes one failure from an address.
    ///
    /// - Returns: Seconds until the address has a failure left; `nil` when it had one now.
    mutating func charge(_ address: IPNetwork, at now: ContinuousClock.Instant) -> Int? {
        var record = records[address] ?? Record(fullAgain: now, lastSeen: now)
        record.lastSeen = now
        defer { records[address] = record }
        if records[address] == nil, records.count >= Self.maximumAddresses { forgetOldest() }
        let charged = max(record.fullAgain, now) + cost
        let excess = charged - now - Self.window
        guard excess > .zero else {
            record.fullAgain = charged
            return nil
        }
        return max(1, Int((excess / .seconds(1)).rounded(.up)))
    }

    private mutating func forgetOldest() {
        let oldest = records.min { $0.value.lastSeen < $1.value.lastSeen }
        if let oldest { records.removeValue(forKey: oldest.key) }
    }
}
