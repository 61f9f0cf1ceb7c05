import Glibc

/// The process's open descriptors: their limit, and the kernel's table of them.
enum DescriptorTable {
    /// The kernel takes 8 bytes for each: 2 MiB.
    private static var mostReserved: Int { 262_144 }

    /// Raises the limit to its maximum and returns it.
    static func raiseLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return 1_024
        }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        _ = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(clamping: limit.rlim_cur)
    }

    /// Has the kernel make room for `count` descriptors at once, of at most ``mostReserved``.
    ///
    /// Otherwise it doubles the table whenever it is full, and in a process with threads the one that
    /// opens a descriptor waits until no processor uses the former table, some 20 ms: all clients
    /// would wait with the thread that accepts the 1,024th of them.
    static func reserve(_ count: Int) {
        // The lowest free descriptor from this number on; the table keeps its size when it is closed.
        let last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, CInt(min(count, mostReserved) - 1))
        if last >= 0 { _ = close(last) }
    }
}
