/// Decides how many notifications may be on their way to one of Apple's services at once.
///
/// A service that is slow gets fewer, so that each is answered long before the sender would send it
/// again; one that is fast gets as many as its streams allow. Times are milliseconds.
struct StreamWindow {
    private static let start = 128.0
    private static let least = 4.0
    private static let most = 65_536.0
    /// An answer that came sooner lets one more go; one that came later, fewer.
    private static let fast: UInt64 = 1_000
    private static let slow: UInt64 = 3_000
    private static let shrinkInterval: UInt64 = 1_000

    private var allowed = start
    private var lastShrink: UInt64 = 0

    /// The most notifications without an answer.
    var size: Int { Int(allowed) }

    mutating func answered(after time: UInt64, at now: UInt64) {
        if time < Self.fast {
            allowed = min(Self.most, allowed + 1)
        } else if time > Self.slow, now >= lastShrink + Self.shrinkInterval {
            lastShrink = now
            allowed = max(Self.least, allowed * 0.7)
        }
    }
}
