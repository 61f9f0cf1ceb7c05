import Glibc

/// How much memory the process may use: the machine's, or less where its control group says so.
package enum MachineMemory {
    /// In bytes; `nil` when nobody says. `root` stands before the paths of files, for tests.
    package static func available(root: String = "") -> Int? {
        let machine = sysconf(CInt(_SC_PHYS_PAGES)) * sysconf(CInt(_SC_PAGESIZE))
        let bounds = controlGroups(root).flatMap { limits(of: $0, root) }
        return (bounds + (machine > 0 ? [machine] : [])).min()
    }

    /// Of the limit of memory that nobody set: a fifth is left to the kernel's buffers and to others.
    package static var usualPercent: Int { 80 }

    /// A control group in which the process is: the folder of its hierarchy, its path below that, and
    /// the name of the file with its limit.
    private struct ControlGroup {
        var folder: String
        var path: String
        var file: String
    }

    /// The lines of /proc/self/cgroup that concern memory (cgroups(7)).
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

    /// The limits of a group and of those around it, each of which binds it. "max" is none.
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

    /// At most the first 4 KiB of a file; empty when it cannot be read.
    private static func text(_ path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { _ = close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : ""
    }
}
