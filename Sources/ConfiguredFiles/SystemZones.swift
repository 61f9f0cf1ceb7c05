import Glibc
import OperatorConfiguration
import PlainText
import SystemFiles
import TimeZones

/// The time zones that this machine knows (Debian's `tzdata`).
package enum SystemZones {
    private static let usualDirectory = "/usr/share/zoneinfo"
    private static let mostZones = 4_096
    private static let mostDepth = 3

    /// A configuration names a zone that is not there.
    package struct Unknown: FileRefusal, Equatable {
        package let description: String
        package var isTransient: Bool { false }
    }

    /// Reads all zones; without zone data there is UTC alone. It takes some tens of milliseconds. What
    /// clocks did before `now` (UNIX seconds) is left out.
    package static func load(directory: String = usualDirectory, now: Int64) -> ZoneTable {
        var table = ZoneTable()
        read(directory, prefix: "", depth: 0, since: now - 86_400, into: &table)
        return table
    }

    private static func read(
        _ directory: String, prefix: String, depth: Int, since: Int64, into table: inout ZoneTable
    ) {
        guard let stream = opendir(directory) else { return }
        defer { closedir(stream) }
        while table.count < mostZones, let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            let whole = prefix + name
            // "posix" and "right" hold all zones once more.
            guard ZoneTable.isName(whole.utf8), !["posix", "right"].contains(whole) else {
                continue
            }
            let path = "\(directory)/\(name)"
            var status = stat()
            guard stat(path, &status) == 0 else { continue }
            if status.st_mode & S_IFMT == S_IFDIR {
                guard depth < mostDepth else { continue }
                read(path, prefix: whole + "/", depth: depth + 1, since: since, into: &table)
            } else if let file = try? WholeFile(path, maximumByteCount: ZoneRules.mostBytes),
                let rules = ZoneRules(file.bytes, since: since)
            {
                table.set(Array(whole.utf8), rules)
            }
        }
    }

    /// Checks that the zone of a configuration is one of those that ``load(directory:now:)`` finds;
    /// nothing is read for UTC.
    package static func check(
        _ configuration: HermesConfiguration, directory: String = usualDirectory
    ) throws(Unknown) {
        let name = configuration.limits.wakeTimeZone
        guard !name.hasBytes(of: ZoneTable.utc) else { return }
        guard load(directory: directory, now: Int64(time(nil)))[name.utf8] != nil else {
            throw Unknown(
                description: """
                    wakes.time_zone: \(VisibleText.quoted(name)) is none of the time zones in \
                    \(directory). Give a name such as Europe/Berlin, or install the package tzdata
                    """)
        }
    }
}
