import Glibc

/// CPU time of this process, all threads, in nanoseconds.
struct CPUTime {
    let user: UInt64
    let system: UInt64

    var total: UInt64 { user + system }

    static func now() -> CPUTime {
        var usage = rusage()
        // Fails only for arguments that this is not.
        _ = getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return CPUTime(user: nanoseconds(usage.ru_utime), system: nanoseconds(usage.ru_stime))
    }

    static func - (end: CPUTime, start: CPUTime) -> CPUTime {
        CPUTime(user: end.user - start.user, system: end.system - start.system)
    }

    private static func nanoseconds(_ time: timeval) -> UInt64 {
        UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_usec) * 1_000
    }
}
