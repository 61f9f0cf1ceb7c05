import CLinux

/// Ends a series of like steps after a set time, so that what they have to send leaves before the rest
/// is done. Looks at the clock only after every few of them.
struct Stint {
    private let stepsBetweenLooks: Int
    private let end: UInt64
    private var left: Int

    /// Ends at the first look after `end`, in microseconds of the monotonic clock: after
    /// `stepsBetweenLooks` steps, or twice, and so on.
    init(until end: UInt64, stepsBetweenLooks: Int = 16) {
        self.end = end
        self.stepsBetweenLooks = stepsBetweenLooks
        left = stepsBetweenLooks
    }

    /// Ends at the first look after so much time from now.
    init(microseconds: UInt64, stepsBetweenLooks: Int = 16) {
        self.init(
            until: hermes_monotonic_us() + microseconds, stepsBetweenLooks: stepsBetweenLooks)
    }

    /// Counts a step; true when it was the last one for now.
    mutating func isOver() -> Bool {
        left -= 1
        guard left == 0 else { return false }
        left = stepsBetweenLooks
        return hermes_monotonic_us() >= end
    }
}
