import Glibc
import SystemFiles

/// The memory available to the process: the machine's, or the limit of its control group.
package enum MachineMemory {
    /// In bytes; `nil` when unknown. `root` precedes the paths of files, for tests.
    package static func available(root: String = "") -> Int? {
        let machine = sysconf(CInt(_SC_PHYS_PAGES)) * sysconf(CInt(_SC_PAGESIZE))
        let bounds = controlGroups(root).flatMap { limits(of: $0, root) }
        return (bounds + (machine > 0 ? [machine] : [])).min()
    }

    /// Share of the memory that `limits.memory: auto` uses; the kernel and others get the rest.
    package static var usualPercent: Int { 80 }

    /// A control group of the process: its hierarchy's folder, its path, and its limit's file.
    private struct ControlGroup {
        var folder: String
        var path: String
        var file: String
    }

    /// The memory control groups in /proc/self/cgroup (cgroups(7)).
    private static func controlGroups(_ root: String) -> [ControlGroup] {
        text(root + "/proc/self/cgroup").split(separator: "\n").compactMap { line in
            let parts = line.split(
                separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { return nil }
            if parts[0] == "0", parts[1].isEmpty {
                return ControlGroup(
                    folder: "/sys/fs/cgroup", path: String(parts[2]), file: "memory.max")
            }
            guard parts[1].split(separator: ",").contains("memory") else { return nil }
            return ControlGroup(
                folder: "/sys/fs/cgroup/memory", path: String(parts[2]),
                file: "memory.limit_in_bytes")
        }
    }

    /// The limits of a group and of its parents, all of which apply. "max" means none.
    private static func limits(of group: ControlGroup, _ root: String) -> [Int] {
        var names = group.path.split(separator: "/")
        var limits: [Int] = []
        while true {
            let path = names.map { "/\($0)" }.joined()
            let value = text("\(root)\(group.folder)\(path)/\(group.file)")
            if let bytes = Int(value.prefix { $0 != "\n" }), bytes > 0 { limits.append(bytes) }
            guard names.popLast() != nil else { return limits }
        }
    }

    /// The first 4 KiB of a file; empty when it cannot be read.
    private static func text(_ path: String) -> String {
        let bytes = try? OpenFile(path).readAll(maximumByteCount: 4_095)
        return String(decoding: bytes ?? [], as: UTF8.self)
    }
}
