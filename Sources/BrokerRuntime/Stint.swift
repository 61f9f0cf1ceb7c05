import CLinux

/// Ends a series of like steps after a millisecond, so that what they have to send leaves before the
/// rest is done. Looks at the clock only after every few of them.
struct Stint {
    private static var stepsBetweenLooks: Int { 16 }
    private static var microseconds: UInt64 { 1_000 }

    private var left = stepsBetweenLooks
    private var end: UInt64 = 0

    /// Counts a step; true when it was the last one for now.
    mutating func isOver() -> Bool {
        left -= 1
        guard left == 0 else { return false }
        left = Self.stepsBetweenLooks
        let now = hermes_monotonic_us()
        guard end != 0 else {
            end = now + Self.microseconds
            return false
        }
        return now >= end
    }
}
