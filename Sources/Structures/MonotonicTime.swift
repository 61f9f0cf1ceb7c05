/// A point in time on a clock that never goes back, in milliseconds since an arbitrary start.
public struct MonotonicTime: Hashable, Comparable, Sendable, BitwiseCopyable {
    public var milliseconds: UInt64

    public init(milliseconds: UInt64) { self.milliseconds = milliseconds }

    public static func < (left: Self, right: Self) -> Bool {
        left.milliseconds < right.milliseconds
    }

    public func advanced(byMilliseconds span: UInt64) -> Self {
        Self(milliseconds: milliseconds &+ span)
    }

    /// Milliseconds from `earlier` to this time; 0 when `earlier` is the later one.
    public func milliseconds(since earlier: Self) -> UInt64 {
        milliseconds > earlier.milliseconds ? milliseconds - earlier.milliseconds : 0
    }
}

extension Duration {
    /// Whole milliseconds, rounded up; 0 for negative durations.
    public var wholeMilliseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        return UInt64(seconds) * 1_000
            + UInt64((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
