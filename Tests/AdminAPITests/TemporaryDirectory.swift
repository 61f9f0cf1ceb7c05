import Glibc
import Testing

/// Creates a directory of mode 0700 for a test.
func makeTemporaryDirectory() throws -> String {
    let template = try #require(strdup("/tmp/hermes-test.XXXXXX"))
    defer { free(template) }
    try #require(mkdtemp(template) != nil)
    return String(cString: template)
}

/// Runs a test with a directory that is removed afterwards.
func withTemporaryDirectory(_ body: (String) throws -> Void) throws {
    let path = try makeTemporaryDirectory()
    defer { removeDirectory(path) }
    try body(path)
}

/// The same for an asynchronous test.
func withTemporaryDirectory(_ body: (String) async throws -> Void) async throws {
    let path = try makeTemporaryDirectory()
    defer { removeDirectory(path) }
    try await body(path)
}

/// Removes a directory with its files, sockets and empty directories.
func removeDirectory(_ path: String) {
    if let directory = opendir(path) {
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name == "." || name == ".." { continue }
            if unlink(path + "/" + name) != 0 { rmdir(path + "/" + name) }
        }
        closedir(directory)
    }
    rmdir(path)
}
