import Glibc

/// A folder of one test's own, which is deleted with the value; it holds files only.
package final class TemporaryFolder {
    /// A call on a file failed.
    private struct Failure: Error {
        let path: String
        let code = errno
    }

    package let path: String

    package init() throws {
        var template = Array("/tmp/hermes-test-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw Failure(path: "/tmp") }
        path = String(cString: made)
    }

    deinit {
        for name in contents { unlink(file(name)) }
        rmdir(path)
    }

    /// The names in it, sorted.
    package var contents: [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    package func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file and returns its path.
    @discardableResult
    package func write(_ text: String, to name: String, mode: mode_t = 0o600) throws -> String {
        let bytes = Array(text.utf8)
        guard let stream = fopen(file(name), "w") else { throw Failure(path: file(name)) }
        defer { fclose(stream) }
        guard fwrite(bytes, 1, bytes.count, stream) == bytes.count, chmod(file(name), mode) == 0
        else { throw Failure(path: file(name)) }
        return file(name)
    }

    package func read(_ name: String) throws -> String {
        guard let stream = fopen(file(name), "r") else { throw Failure(path: file(name)) }
        defer { fclose(stream) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&bytes, 1, bytes.count, stream)
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// The status of a file or link itself.
    package func status(_ name: String) throws -> stat {
        var result = stat()
        guard lstat(file(name), &result) == 0 else { throw Failure(path: file(name)) }
        return result
    }
}
