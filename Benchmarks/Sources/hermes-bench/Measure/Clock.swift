import CBench

/// Monotonic time in nanoseconds.
enum Clock {
    static func nanoseconds() -> UInt64 { bench_now_ns() }
}
