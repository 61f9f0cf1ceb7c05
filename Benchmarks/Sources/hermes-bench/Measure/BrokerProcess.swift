import CBench
import Glibc

/// The process of the broker under test, seen from outside through /proc.
struct BrokerProcess {
    let identifier: pid_t
    /// The program's name as the kernel has it.
    let name: String

    /// User space memory, in bytes.
    struct Memory: Equatable {
        /// Resident, shared pages divided among those that share them.
        var proportional: UInt64
        /// Resident pages that no other process maps.
        var unshared: UInt64
        /// Resident in all.
        var resident: UInt64
    }

    init(identifier: Int32) throws(BenchFailure) {
        self.identifier = identifier
        guard identifier > 0, let name = Self.read("/proc/\(identifier)/comm") else {
            throw BenchFailure(
                "there is no process \(identifier). Give the broker's process number with --pid.")
        }
        self.name = name.filter { $0 != "\n" }
        _ = try cpuNanoseconds()
    }

    /// CPU time of all threads, user and system, since the process began.
    func cpuNanoseconds() throws(BenchFailure) -> UInt64 {
        let used = bench_process_cpu_ns(identifier)
        guard used >= 0 else { throw gone() }
        return UInt64(used)
    }

    /// The system's part of the CPU time, in the kernel's coarser ticks.
    func systemCPUNanoseconds() throws(BenchFailure) -> UInt64 {
        // The program's name in the second field may contain spaces and parentheses.
        guard let stat = Self.read("/proc/\(identifier)/stat"),
            let end = stat.lastIndex(of: ")")
        else { throw gone() }
        let fields = stat[end...].split(separator: " ")
        guard fields.count > 13, let ticks = UInt64(fields[13]) else { throw gone() }
        return ticks * 1_000_000_000 / UInt64(sysconf(CInt(_SC_CLK_TCK)))
    }

    func memory() throws(BenchFailure) -> Memory {
        guard let rollup = Self.read("/proc/\(identifier)/smaps_rollup") else {
            throw BenchFailure(
                "/proc/\(identifier)/smaps_rollup cannot be read: the broker has ended, "
                    + "or belongs to another user. Run as that user or as root.")
        }
        var memory = Memory(proportional: 0, unshared: 0, resident: 0)
        for line in rollup.split(separator: "\n") {
            let words = line.split(separator: " ", omittingEmptySubsequences: true)
            guard words.count == 3, let kibibytes = UInt64(words[1]) else { continue }
            switch words[0] {
            case "Rss:": memory.resident = kibibytes * 1_024
            case "Pss:": memory.proportional = kibibytes * 1_024
            case "Private_Clean:", "Private_Dirty:": memory.unshared += kibibytes * 1_024
            default: continue
            }
        }
        return memory
    }

    /// The most memory that was ever resident, in bytes.
    func peakResidentBytes() throws(BenchFailure) -> UInt64 {
        for line in (Self.read("/proc/\(identifier)/status") ?? "").split(separator: "\n")
        where line.hasPrefix("VmHWM:") {
            let words = line.split { $0 == " " || $0 == "\t" }
            guard words.count == 3, let kibibytes = UInt64(words[1]) else { continue }
            return kibibytes * 1_024
        }
        throw gone()
    }

    private func gone() -> BenchFailure {
        BenchFailure("the broker, process \(identifier), has ended.")
    }

    private static func read(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        let buffer = UnsafeMutableRawPointer.allocate(byteCount: 16 * 1_024, alignment: 8)
        defer { buffer.deallocate() }
        var count = 0
        while count < 16 * 1_024 {
            let part = Glibc.read(descriptor, buffer + count, 16 * 1_024 - count)
            if part <= 0 { break }
            count += part
        }
        guard count > 0 else { return nil }
        return String(
            decoding: UnsafeRawBufferPointer(start: buffer, count: count), as: UTF8.self)
    }
}

/// CPU time of a span, taken at its two ends.
struct CPUMark {
    var total: UInt64 = 0
    var system: UInt64 = 0
    var own: UInt64 = 0
    var time: UInt64

    init(_ process: BrokerProcess?) throws(BenchFailure) {
        time = Clock.nanoseconds()
        own = UInt64(max(0, bench_process_cpu_ns(getpid())))
        guard let process else { return }
        total = try process.cpuNanoseconds()
        system = try process.systemCPUNanoseconds()
    }
}
