import Glibc
import SystemFiles

/// The directory of a journal's files, and their names:
///
/// - `journal-<index>.segment` is in use or free. The index does not tell the order.
/// - `journal-<index>.segment.new` is being created. The next start removes it if it was not
///   finished.
/// - `damaged-<index>.segment` was set aside because a part of it could not be read. Every start
///   reports it until the operator accepts the loss.
/// - `damaged-<index>.segment.accepted` is its name after that. The journal never touches it again.
final class JournalDirectory: Sendable {
    static let unfinishedSuffix = ".new"
    private static let acceptedSuffix = ".accepted"

    /// The names in the directory.
    struct Contents: Hashable {
        /// Indices of journal files, rising.
        var segments: [Int] = []
        var unfinished: [String] = []
        /// Names of files that were set aside; sorted.
        var setAside: [String] = []
    }

    let path: String
    private let owned: OwnedDescriptor

    /// Opens the directory, and creates it with mode 0700 if it is missing.
    init(_ path: String) throws(StoreFailure) {
        if mkdir(path, 0o700) == 0 {
            let parent = try Self.openDirectory(path + "/..")
            guard fsync(parent.rawValue) == 0 else {
                throw StoreFailure(
                    operation: "synchronise the directory of", path: path, errno: errno)
            }
        } else if errno != EEXIST {
            throw StoreFailure(operation: "create directory", path: path, errno: errno)
        }
        self.path = path
        owned = try Self.openDirectory(path)
    }

    func path(ofSegment index: Int) -> String { "\(path)/journal-\(index).segment" }

    /// Makes new and changed names durable.
    func synchronize() throws(StoreFailure) {
        guard fsync(owned.rawValue) == 0 else {
            throw StoreFailure(operation: "synchronise directory", path: path, errno: errno)
        }
    }

    /// Reads the names in the directory.
    func list() throws(StoreFailure) -> Contents {
        guard let stream = opendir(path) else {
            throw StoreFailure(operation: "list directory", path: path, errno: errno)
        }
        defer { closedir(stream) }
        var contents = Contents()
        while true {
            errno = 0
            guard let entry = readdir(stream) else { break }
            let name = withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if let index = Self.index(in: name, prefix: "journal-", suffix: ".segment") {
                contents.segments.append(index)
            } else if name.hasPrefix("journal-") && name.hasSuffix(Self.unfinishedSuffix) {
                contents.unfinished.append(name)
            } else if Self.index(in: name, prefix: "damaged-", suffix: ".segment") != nil {
                contents.setAside.append(name)
            }
        }
        guard errno == 0 else {
            throw StoreFailure(operation: "list directory", path: path, errno: errno)
        }
        contents.segments.sort()
        contents.setAside.sort()
        return contents
    }

    /// Renames a damaged file so that the journal leaves it alone, and returns the new path.
    func setAside(_ path: String) throws(StoreFailure) -> String {
        var index = 1
        var target = ""
        // The directory belongs to one process, so no other takes the name in between.
        repeat {
            target = "\(self.path)/damaged-\(index).segment"
            index += 1
        } while access(target, F_OK) == 0 || access(target + Self.acceptedSuffix, F_OK) == 0
        guard rename(path, target) == 0 else {
            throw StoreFailure(operation: "set aside", path: path, errno: errno)
        }
        try synchronize()
        return target
    }

    /// Renames a file that was set aside, because its loss is accepted; false if it cannot be
    /// renamed.
    static func accept(_ path: String) -> Bool { rename(path, path + acceptedSuffix) == 0 }

    private static func openDirectory(_ path: String) throws(StoreFailure) -> OwnedDescriptor {
        do throws(SystemError) {
            return try OwnedDescriptor(opening: path, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
        } catch {
            throw StoreFailure(error, operation: "open directory")
        }
    }

    /// The number between prefix and suffix; `nil` unless it is written as the journal writes
    /// numbers.
    private static func index(in name: String, prefix: String, suffix: String) -> Int? {
        guard name.hasPrefix(prefix), name.hasSuffix(suffix),
            name.utf8.count > prefix.utf8.count + suffix.utf8.count
        else { return nil }
        let digits = name.dropFirst(prefix.count).dropLast(suffix.count)
        guard let index = Int(digits), index > 0, String(index) == digits else { return nil }
        return index
    }
}
