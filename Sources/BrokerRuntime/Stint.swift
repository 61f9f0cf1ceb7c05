import CLinux

/// Ends a series of like steps after a set time, so that what they have to send leaves before the rest
/// is done. Looks at the clock only after every few of them.
struct Stint {
    private let stepsBetweenLooks: Int
    private let microseconds: UInt64
    private var left: Int
    private var end: UInt64 = 0

    /// `microseconds`: time from the first look at the clock on, which follows the first
    /// `stepsBetweenLooks` steps.
    init(microseconds: UInt64, stepsBetweenLooks: Int = 16) {
        self.microseconds = microseconds
        self.stepsBetweenLooks = stepsBetweenLooks
        left = stepsBetweenLooks
    }

    /// Counts a step; true when it was the last one for now.
    mutating func isOver() -> Bool {
        left -= 1
        guard left == 0 else { return false }
        left = stepsBetweenLooks
        let now = hermes_monotonic_us()
        guard end != 0 else {
            end = now + microseconds
            return false
        }
        return now >= end
    }
}
