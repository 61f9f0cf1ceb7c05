import Addresses

/// Limits the failed authentications of one address; performs no I/O and reads no clock.
///
/// A wrong token costs its address one of `perMinute` failures, which return evenly; without any
/// left the address must wait. A valid token is always accepted: a whole office may share an
/// address.
struct FailureBudget {
    private struct Record {
        /// The time at which all failures have returned.
        var fullAgain: ContinuousClock.Instant
        var lastSeen: ContinuousClock.Instant
    }

    /// With more addresses, the one unseen for longest is removed.
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
    /// - Returns: Seconds until it has one again; `nil` if it had one left.
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
