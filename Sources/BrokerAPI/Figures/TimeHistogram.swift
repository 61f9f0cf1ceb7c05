/// Counts spans of time by length, in buckets whose bounds double: 0.5 ms, 1 ms, 2 ms, … 16.384 s.
public struct TimeHistogram: Sendable, Equatable {
    /// Number of bounds; longer spans have a bucket of their own behind them.
    public static var boundCount: Int { 16 }
    private static var firstBoundMicroseconds: UInt64 { 500 }

    /// Spans of each bucket, and not of those below it. In place, so that counting one needs no
    /// check whether an array is shared.
    private var counts = InlineArray<17, UInt64>(repeating: 0)
    private var totalMicroseconds: UInt64 = 0

    public init() {}

    /// Counts one span, without allocating.
    public mutating func add(microseconds: UInt64) {
        let units = microseconds / Self.firstBoundMicroseconds
        let bucket = min(Self.boundCount, UInt64.bitWidth - units.leadingZeroBitCount)
        counts[bucket] += 1
        totalMicroseconds &+= microseconds
    }

    /// The sum of all spans.
    public var seconds: Double { Double(totalMicroseconds) / 1e6 }
    public var count: UInt64 { counts.indices.reduce(0) { $0 + counts[$1] } }

    /// For each bound in seconds, the number of spans below it.
    public var cumulative: [(bound: Double, count: UInt64)] {
        var sum: UInt64 = 0
        return (0..<Self.boundCount).map { bucket in
            sum += counts[bucket]
            return (Double(Self.firstBoundMicroseconds << UInt64(bucket)) / 1e6, sum)
        }
    }

    public static func == (one: TimeHistogram, other: TimeHistogram) -> Bool {
        one.totalMicroseconds == other.totalMicroseconds
            && one.counts.indices.allSatisfy { one.counts[$0] == other.counts[$0] }
    }
}
