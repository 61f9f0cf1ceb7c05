/// Decides how many connections to one endpoint there are. Times are milliseconds of the monotonic
/// clock.
struct EndpointPool {
    /// Requests wait so long for a stream before a further connection is opened.
    private static let growthDelay: UInt64 = 50
    /// Least time between two attempts to connect.
    private static let interval: UInt64 = 1_000
    /// The longest pause while nothing can be reached: what waits is to leave soon after the end of
    /// an outage. A service that takes connections and ends them without an answer may count them.
    private static let longestBackoff: UInt64 = 5_000
    private static let longestFruitlessBackoff: UInt64 = 60_000
    /// A connection beyond the first is closed when no request was on it for so long.
    static let idle: UInt64 = 300_000

    let most: Int
    private var nextAttempt: UInt64 = 0
    private var failures: UInt64 = 0
    /// Goodbyes one after the other, of services that answered nothing else.
    private var goodbyes: UInt64 = 0
    /// Goodbyes after each of which a connection is opened at once: one notification may cause them.
    private static let plainGoodbyes: UInt64 = 5
    /// Since when requests wait for a stream; `nil` while none does.
    private var waitingSince: UInt64?
    /// The reason of the last failure; `nil` after a success, which is a first answer.
    private(set) var failure: String?

    init(most: Int) { self.most = most }

    /// True when a connection is to be opened now.
    mutating func opens(connections: Int, waiting: Bool, at now: UInt64) -> Bool {
        guard waiting else {
            waitingSince = nil
            return false
        }
        let since = waitingSince ?? now
        waitingSince = since
        guard connections < most, now >= nextAttempt,
            connections == 0 || now - since >= Self.growthDelay
        else { return false }
        nextAttempt = now + Self.interval
        return true
    }

    /// Notes the first answer on a connection.
    mutating func succeeded() {
        failures = 0
        goodbyes = 0
        failure = nil
    }

    /// Notes a connection whose only answers said goodbye ("Shutdown", "IdleTimeout").
    mutating func saidGoodbye(_ reason: String, random: Double, at now: UInt64) {
        goodbyes += 1
        guard goodbyes > Self.plainGoodbyes else { return }
        failed(reason, wasOpen: true, random: random, at: now)
    }

    /// Notes a connection that could not be opened, or that was open and ended without an answer.
    /// `random` is 0 to 1.
    mutating func failed(_ reason: String, wasOpen: Bool, random: Double, at now: UInt64) {
        failure = reason
        let longest = wasOpen ? Self.longestFruitlessBackoff : Self.longestBackoff
        let pause = min(Self.interval << min(failures, 8), longest)
        failures += 1
        nextAttempt = max(nextAttempt, now + pause / 2 + UInt64(Double(pause / 2) * random))
    }

    /// Time until the next attempt to connect, in milliseconds.
    func backoff(at now: UInt64) -> UInt64 { nextAttempt > now ? nextAttempt - now : 0 }
}
