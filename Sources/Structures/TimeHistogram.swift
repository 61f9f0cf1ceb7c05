/// Counts spans of time by length, in buckets whose bounds double.
public struct TimeHistogram: Sendable, Equatable {
    /// The first bound; each further one is twice the one before.
    public enum FirstBound: Sendable {
        /// For what people wait for: 0.5 ms, 1 ms, 2 ms, … 16.384 s.
        case halfMillisecond
        /// For what the broker does in one go: 50 us, 100 us, 200 us, … 1.6384 s.
        case fiftyMicroseconds

        // A constant each, so that no division is left for the processor.
        @inline(__always)
        func units(of microseconds: UInt64) -> UInt64 {
            switch self {
            case .halfMillisecond: microseconds / 500
            case .fiftyMicroseconds: microseconds / 50
            }
        }

        var microseconds: UInt64 {
            switch self {
            case .halfMillisecond: 500
            case .fiftyMicroseconds: 50
            }
        }
    }

    /// Number of bounds; longer spans have a bucket of their own behind them.
    public static var boundCount: Int { 16 }

    private let firstBound: FirstBound
    /// Spans of each bucket, and not of those below it. In place, so that counting one needs no
    /// check whether an array is shared.
    private var counts = InlineArray<17, UInt64>(repeating: 0)
    private var totalMicroseconds: UInt64 = 0

    public init(_ firstBound: FirstBound = .halfMillisecond) { self.firstBound = firstBound }

    /// Counts spans of one length, without allocating.
    public mutating func add(microseconds: UInt64, count: UInt64 = 1) {
        let units = firstBound.units(of: microseconds)
        let bucket = min(Self.boundCount, UInt64.bitWidth - units.leadingZeroBitCount)
        counts[bucket] &+= count
        totalMicroseconds &+= microseconds &* count
    }

    /// The sum of all spans.
    public var seconds: Double { Double(totalMicroseconds) / 1e6 }
    public var count: UInt64 { counts.indices.reduce(0) { $0 + counts[$1] } }

    /// For each bound in seconds, the number of spans below it.
    public var cumulative: [(bound: Double, count: UInt64)] {
        var sum: UInt64 = 0
        return (0..<Self.boundCount).map { bucket in
            sum += counts[bucket]
            return (Double(firstBound.microseconds << UInt64(bucket)) / 1e6, sum)
        }
    }

    public static func == (one: TimeHistogram, other: TimeHistogram) -> Bool {
        one.firstBound == other.firstBound && one.totalMicroseconds == other.totalMicroseconds
            && one.counts.indices.allSatisfy { one.counts[$0] == other.counts[$0] }
    }
}
