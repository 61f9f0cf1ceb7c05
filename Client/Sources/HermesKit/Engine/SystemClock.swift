import HermesClientCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The system's two clocks.
enum SystemClock {
    static var now: Moment {
        Moment(
            monotonicMilliseconds: monotonicMilliseconds, unixMilliseconds: unixMilliseconds)
    }

    static var unixMilliseconds: Int64 { milliseconds(CLOCK_REALTIME) }

    /// Goes on while the device sleeps.
    static var monotonicMilliseconds: Int64 {
        #if canImport(Darwin)
            milliseconds(CLOCK_MONOTONIC)
        #else
            milliseconds(CLOCK_BOOTTIME)
        #endif
    }

    private static func milliseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}
