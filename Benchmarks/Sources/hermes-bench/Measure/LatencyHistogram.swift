/// Spans in nanoseconds, counted in buckets that are at most 0.8 % wide.
struct LatencyHistogram: ~Copyable {
    private static var subBucketBits: Int { 7 }
    private static var bucketCount: Int { (64 - subBucketBits + 1) << subBucketBits }

    private let buckets: UnsafeMutablePointer<UInt64>
    private(set) var count: UInt64 = 0
    /// Exact; 0 when nothing was recorded.
    private(set) var maximum: UInt64 = 0

    init() {
        buckets = .allocate(capacity: Self.bucketCount)
        buckets.initialize(repeating: 0, count: Self.bucketCount)
    }

    deinit { buckets.deallocate() }

    mutating func record(_ nanoseconds: UInt64) {
        buckets[Self.bucket(of: nanoseconds)] += 1
        count += 1
        if nanoseconds > maximum { maximum = nanoseconds }
    }

    mutating func removeAll() {
        buckets.update(repeating: 0, count: Self.bucketCount)
        count = 0
        maximum = 0
    }

    /// The span that `quantile` (0 to 1) of all recorded ones do not exceed; `nil` without any.
    func value(atQuantile quantile: Double) -> UInt64? {
        guard count > 0 else { return nil }
        let rank = max(1, UInt64((Double(count) * quantile).rounded(.up)))
        var seen: UInt64 = 0
        for index in 0..<Self.bucketCount {
            seen += buckets[index]
            if seen >= rank { return min(Self.upperBound(ofBucket: index), maximum) }
        }
        return maximum
    }

    private static func bucket(of value: UInt64) -> Int {
        let magnitude = max(0, UInt64.bitWidth - value.leadingZeroBitCount - subBucketBits)
        guard magnitude > 0 else { return Int(value) }
        let top = Int(value >> UInt64(magnitude - 1)) - (1 << subBucketBits)
        return (magnitude << subBucketBits) + top
    }

    private static func upperBound(ofBucket index: Int) -> UInt64 {
        let magnitude = index >> subBucketBits
        guard magnitude > 0 else { return UInt64(index) }
        let top = UInt64(index & ((1 << subBucketBits) - 1) | 1 << subBucketBits)
        let shift = UInt64(magnitude - 1)
        return (top + 1) << shift &- 1
    }
}
