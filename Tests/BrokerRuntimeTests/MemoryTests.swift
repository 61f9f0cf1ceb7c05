import BrokerAPI
import Glibc
import Testing

@testable import BrokerRuntime

@Suite("Memory pressure")
struct MemoryPressureTests {
    @Test(
        "each step begins at its share of the limit, and ends a little below it",
        arguments: [
            // Degree before, percent used, degree after.
            (MemoryPressure.none, 99, MemoryPressure.none), (.none, 100, .newcomers),
            (.none, 104, .newcomers), (.none, 105, .publishers), (.none, 110, .readers),
            (.none, 300, .readers), (.newcomers, 96, .newcomers), (.newcomers, 95, .newcomers),
            (.newcomers, 94, .none), (.newcomers, 105, .publishers),
            (.publishers, 101, .publishers), (.publishers, 99, .newcomers),
            (.publishers, 94, .none), (.readers, 105, .readers), (.readers, 104, .publishers),
            (.readers, 99, .newcomers), (.readers, 12, .none),
        ])
    func steps(from: MemoryPressure, percent: Int, to: MemoryPressure) {
        #expect(from.next(used: percent << 20, limit: 100 << 20) == to)
        #expect(from.next(used: percent * 3, limit: 300) == to)
    }

    @Test("no used and no limit overflows anything")
    func extremes() {
        #expect(MemoryPressure.none.next(used: .max, limit: 1) == .readers)
        #expect(MemoryPressure.readers.next(used: 0, limit: 0) == .none)
    }
}

/// A folder in place of the root of the file system.
private final class FakeRoot {
    let path: String
    /// Files and folders; a folder precedes its content.
    private var made: [String] = []

    init(_ files: [String: String]) throws {
        var template = Array("/tmp/hermes-root-XXXXXX".utf8CString)
        path = try #require(mkdtemp(&template).map { String(cString: $0) })
        made.append(path)
        for (name, text) in files.sorted(by: { $0.key < $1.key }) {
            var folder = path
            for part in name.split(separator: "/").dropLast() {
                folder += "/\(part)"
                if mkdir(folder, 0o700) == 0 { made.append(folder) }
            }
            let file = try #require(fopen("\(path)/\(name)", "w"))
            fputs(text, file)
            fclose(file)
            made.append("\(path)/\(name)")
        }
    }

    deinit { for name in made.reversed() { remove(name) } }
}

@Suite("Memory of the machine")
struct MachineMemoryTests {
    private static let machine = MachineMemory.available(root: "/nowhere") ?? 0

    @Test("the smallest limit of the control group and those around it counts")
    func nested() throws {
        let root = try FakeRoot([
            "proc/self/cgroup": "0::/a.slice/b.service\n",
            "sys/fs/cgroup/a.slice/memory.max": "50000000\n",
            "sys/fs/cgroup/a.slice/b.service/memory.max": "70000000\n",
        ])
        #expect(MachineMemory.available(root: root.path) == 50_000_000)
    }

    @Test("a container sees its group as the root")
    func container() throws {
        let root = try FakeRoot([
            "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "60000000\n",
        ])
        #expect(MachineMemory.available(root: root.path) == 60_000_000)
    }

    @Test("the older hierarchy counts, too")
    func older() throws {
        let root = try FakeRoot([
            "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n0::/\n",
            "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "40000000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        ])
        #expect(MachineMemory.available(root: root.path) == 40_000_000)
    }

    @Test("without a limit it is the machine's", arguments: ["max\n", "nonsense", "", "0\n"])
    func unlimited(text: String) throws {
        let root = try FakeRoot([
            "proc/self/cgroup": "0::/\nbroken\n", "sys/fs/cgroup/memory.max": text,
        ])
        #expect(MachineMemory.available(root: root.path) == Self.machine)
        #expect(Self.machine > 0)
    }

    @Test("private memory grows with used memory, not with reserved memory")
    func privateBytes() {
        let before = ProcessFigures.privateBytes()
        let size = 64 << 20
        let memory = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 4_096)
        defer { memory.deallocate() }
        let reserved = ProcessFigures.privateBytes()
        for offset in stride(from: 0, to: size, by: 4_096) {
            memory.storeBytes(of: 1, toByteOffset: offset, as: UInt8.self)
        }
        #expect(before > 0 && ProcessFigures.privateBytes() >= reserved + size * 3 / 4)
    }
}
