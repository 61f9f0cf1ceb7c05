import Structures

/// How long the loop's turns take, without the wait for events: what every client may have to wait
/// for before its packet is read.
struct TurnTimes {
    private(set) var histogram = TimeHistogram(.fiftyMicroseconds)
    private var longest = RecentMaximum()
    /// The end of the last turn; `nil` before the first.
    private(set) var lastEnd: MonotonicTime?

    /// Counts a turn by its begin and end, in microseconds of the monotonic clock.
    mutating func add(from begin: UInt64, to end: UInt64) {
        let took = end > begin ? end - begin : 0
        histogram.add(microseconds: took)
        let time = MonotonicTime(milliseconds: end / 1_000)
        lastEnd = time
        longest.add(took, at: time)
    }

    /// The longest turn of the last minute, in microseconds.
    func longestMicroseconds(at now: MonotonicTime) -> UInt64 { longest.value(at: now) }
}
