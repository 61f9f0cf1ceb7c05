/// Lets something happen so many times a second, and after a quiet second as many times at once.
///
/// The rate is an argument of each call, 1 to 1,000,000, so that it may change at any time: after a
/// lower one, the bucket is empty at most.
public struct TokenBucket: Sendable, BitwiseCopyable {
    /// Thousandths of tokens that are gone; at a rate per second, one comes back each millisecond.
    private var spent: UInt64 = 0
    private var countedAt = MonotonicTime(milliseconds: 0)

    public init() {}

    /// Takes a token; false when none is left.
    public mutating func take(rate: Int, now: MonotonicTime) -> Bool {
        refill(rate, now)
        guard spent + 1_000 <= UInt64(rate) * 1_000 else { return false }
        spent += 1_000
        return true
    }

    /// Puts a token back that was taken for nothing.
    public mutating func putBack() { spent -= min(spent, 1_000) }

    /// How many tokens are left.
    public mutating func left(rate: Int, now: MonotonicTime) -> Int {
        refill(rate, now)
        let whole = UInt64(rate) * 1_000
        return spent >= whole ? 0 : Int((whole - spent) / 1_000)
    }

    /// When so many tokens will be there, of which a full bucket has enough.
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
