import BrokerAPI
import BrokerCore
import BrokerFeatures
import Glibc

extension ProcessFigures {
    /// Reads all figures; those that cannot be read stay 0. Listing tens of thousands of
    /// descriptors takes milliseconds, so the shard's thread must not call it.
    package static func read() -> ProcessFigures {
        var figures = memory()
        figures.openDescriptors = countDescriptors()
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            figures.descriptorLimit = Int(clamping: limit.rlim_cur)
        }
        return figures
    }

    /// Reads memory and processor time, which takes microseconds.
    static func memory() -> ProcessFigures {
        var figures = ProcessFigures()
        figures.residentBytes = pages().resident * pageBytes
        var usage = rusage()
        if getrusage(RUSAGE_SELF.rawValue, &usage) == 0 {
            // ru_maxrss is in KiB and is updated less often than the pages.
            figures.peakResidentBytes = max(figures.residentBytes, usage.ru_maxrss * 1_024)
            figures.cpuSeconds = seconds(usage.ru_utime) + seconds(usage.ru_stime)
        }
        return figures
    }

    /// Resident memory without files and shared memory.
    static func privateBytes() -> Int {
        let (resident, shared) = pages()
        return max(0, resident - shared) * pageBytes
    }

    private static var pageBytes: Int { Int(sysconf(CInt(_SC_PAGESIZE))) }

    /// Kept open, so that it can be read when no descriptor is free.
    private static let statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)

    /// The second and third number of /proc/self/statm (proc(5)); 0 when they cannot be read.
    private static func pages() -> (resident: Int, shared: Int) {
        // Without arrays and strings, because the data plane calls it four times a second.
        withUnsafeTemporaryAllocation(byteCount: 128, alignment: 1) { text in
            let count = pread(statm, text.baseAddress, text.count, 0)
            var numbers = InlineArray<3, Int>(repeating: 0)
            var field = 0
            for index in 0..<max(0, count) {
                let byte = text[index]
                if byte == UInt8(ascii: " ") {
                    field += 1
                    if field == 3 { return (numbers[1], numbers[2]) }
                } else {
                    numbers[field] = numbers[field] &* 10 &+ Int(byte &- UInt8(ascii: "0"))
                }
            }
            return (0, 0)
        }
    }

    private static func countDescriptors() -> Int {
        guard let directory = opendir("/proc/self/fd") else { return 0 }
        defer { _ = closedir(directory) }
        var count = 0
        while readdir(directory) != nil { count += 1 }
        // Without `.`, `..` and the descriptor of the listing.
        return max(0, count - 3)
    }

    private static func seconds(_ time: timeval) -> Double {
        Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000
    }
}
