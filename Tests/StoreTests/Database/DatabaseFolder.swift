import Glibc

@testable import Store

/// A folder of one test, removed with it.
final class DatabaseFolder {
    let path: String

    init() {
        var template = Array("/tmp/hermes-database-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            preconditionFailure("no temporary folder: errno \(errno)")
        }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit {
        for name in names { _ = unlink("\(path)/\(name)") }
        _ = rmdir(path)
    }

    /// The file of the database.
    var file: String { "\(path)/hermes.sqlite" }

    /// The names of the database's files, sorted.
    var names: [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// A copy as after a crash: the files without the write-ahead log's index, which lives in
    /// shared memory.
    func copyAfterCrash() -> DatabaseFolder {
        let copy = DatabaseFolder()
        for name in names where !name.hasSuffix("-shm") {
            Self.write(Self.read("\(path)/\(name)"), to: "\(copy.path)/\(name)")
        }
        return copy
    }

    static func read(_ path: String) -> [UInt8] {
        guard let file = fopen(path, "r") else { preconditionFailure("\(path): errno \(errno)") }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = fread(&chunk, 1, chunk.count, file)
            guard count > 0 else { return bytes }
            bytes += chunk[..<count]
        }
    }

    static func write(_ bytes: [UInt8], to path: String) {
        guard let file = fopen(path, "w") else { preconditionFailure("\(path): errno \(errno)") }
        defer { fclose(file) }
        precondition(fwrite(bytes, 1, bytes.count, file) == bytes.count, "\(path): errno \(errno)")
    }

    static func mode(_ path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : nil
    }
}
