import Credentials
import Glibc
import Testing

/// A folder for one test, removed with this object.
final class TemporaryFolder {
    let path: String

    init() throws {
        var template = Array("/tmp/hermes-credentials-XXXXXX".utf8CString)
        let made = try #require(mkdtemp(&template))
        path = String(cString: made)
    }

    deinit {
        for name in contents { unlink(path + "/" + name) }
        rmdir(path)
    }

    /// The names in it, sorted.
    var contents: [String] {
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

    func file(_ name: String) -> String { path + "/" + name }

    @discardableResult
    func write(_ text: String, to name: String, mode: mode_t = 0o600) throws -> String {
        let path = file(name)
        let stream = try #require(fopen(path, "w"))
        let bytes = Array(text.utf8)
        #expect(fwrite(bytes, 1, bytes.count, stream) == bytes.count)
        fclose(stream)
        chmod(path, mode)
        return path
    }

    func read(_ name: String) throws -> String {
        let stream = try #require(fopen(file(name), "r"))
        defer { fclose(stream) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&bytes, 1, bytes.count, stream)
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    func status(_ name: String) throws -> stat {
        var result = stat()
        try #require(lstat(file(name), &result) == 0)
        return result
    }
}

extension Argon2Parameters {
    /// The smallest Argon2 parameters, for fast tests.
    static var cheap: Argon2Parameters {
        get throws {
            try #require(Argon2Parameters(memoryKiB: 8, iterations: 1, parallelism: 1))
        }
    }
}

/// A cheap hash of that password.
func cheapHash(_ password: String) throws -> PasswordHash {
    try PasswordHash(hashing: SecretBytes(copying: Array(password.utf8)), parameters: .cheap)
}

extension PasswordHash {
    func matches(_ password: String) -> Bool {
        Array(password.utf8).withUnsafeBytes { matches($0) }
    }
}
