/// The largest of the values that came in the last minute; 0 without any.
///
/// A value counts for 60 to 70 seconds: they are kept by tens of seconds.
public struct RecentMaximum: Sendable, Equatable {
    private static var millisecondsPerSlot: UInt64 { 10_000 }
    private static var slotCount: UInt64 { 7 }

    /// The maximum of each ten seconds, at their number modulo 7.
    private var maxima = InlineArray<7, UInt64>(repeating: 0)
    /// The ten seconds of the newest value.
    private var newest: UInt64 = 0

    public init() {}

    public mutating func add(_ value: UInt64, at now: MonotonicTime) {
        let slot = now.milliseconds / Self.millisecondsPerSlot
        if slot > newest {
            for passed in (newest + 1)...min(slot, newest + Self.slotCount) {
                maxima[Int(passed % Self.slotCount)] = 0
            }
            newest = slot
        }
        let index = Int(newest % Self.slotCount)
        maxima[index] = max(maxima[index], value)
    }

    public func value(at now: MonotonicTime) -> UInt64 {
        let slot = now.milliseconds / Self.millisecondsPerSlot
        let passed = slot > newest ? slot - newest : 0
        guard passed < Self.slotCount else { return 0 }
        // The oldest slots have passed since the newest value, and nothing has cleared them.
        return (0..<Self.slotCount - passed).reduce(0) { largest, age in
            newest < age ? largest : max(largest, maxima[Int((newest - age) % Self.slotCount)])
        }
    }

    public static func == (one: RecentMaximum, other: RecentMaximum) -> Bool {
        one.newest == other.newest
            && one.maxima.indices.allSatisfy { one.maxima[$0] == other.maxima[$0] }
    }
}
