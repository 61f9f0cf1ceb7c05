/// Limits an event to a rate per second. After a quiet second, one second's events may happen at
/// once.
///
/// The rate, 1 to 1,000,000, is an argument of each call and may change at any time. Lowering it
/// leaves the bucket empty at worst, never in debt.
public struct TokenBucket: Sendable, BitwiseCopyable {
    /// Thousandths of tokens that are missing from a full bucket. At a rate of n per second, n
    /// thousandths come back per millisecond.
    private var spent: UInt64 = 0
    private var countedAt = MonotonicTime(milliseconds: 0)

    public init() {}

    /// Takes a token; false when the bucket is empty.
    public mutating func take(rate: Int, now: MonotonicTime) -> Bool {
        refill(rate, now)
        guard spent + 1_000 <= UInt64(rate) * 1_000 else { return false }
        spent += 1_000
        return true
    }

    /// Puts a token back that was taken but not used.
    public mutating func putBack() { spent -= min(spent, 1_000) }

    /// The whole tokens in the bucket.
    public mutating func left(rate: Int, now: MonotonicTime) -> Int {
        refill(rate, now)
        let whole = UInt64(rate) * 1_000
        return spent >= whole ? 0 : Int((whole - spent) / 1_000)
    }

    /// The time at which the bucket will hold `tokens` tokens, which must not be more than `rate`.
    public mutating func time(of tokens: Int, rate: Int, now: MonotonicTime) -> MonotonicTime {
        refill(rate, now)
        let whole = UInt64(rate) * 1_000
        let wanted = spent + UInt64(tokens) * 1_000
        guard wanted > whole else { return now }
        return now.advanced(byMilliseconds: (wanted - whole + UInt64(rate) - 1) / UInt64(rate))
    }

    private mutating func refill(_ rate: Int, _ now: MonotonicTime) {
        precondition(rate > 0, "a rate of \(rate) a second")
        let elapsed = min(now.milliseconds(since: countedAt), 1_000_000)
        spent = min(spent - min(spent, elapsed * UInt64(rate)), UInt64(rate) * 1_000)
        countedAt = now
    }
}
