import Glibc

/// Reads a file with certificates or a key whole, within a bound.
enum TLSFile {
    struct Unusable: Error {
        let complaint: String
        let cure: String
    }

    /// A chain has some 5 KB, a bundle of authorities some 200, a revocation list perhaps megabytes.
    private static let mostBytes = 16 << 20

    /// All of its bytes. With `isSecret` the file is refused when others may read it.
    static func read(_ path: String, isSecret: Bool) throws(Unusable) -> [UInt8] {
        // A FIFO without a writer would hold a plain open for ever.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw cannot("open", path, errno) }
        defer { _ = close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw cannot("examine", path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw Unusable(
                complaint: "\"\(path)\" is no regular file", cure: "Give the path of a PEM file.")
        }
        guard !isSecret || status.st_mode & 0o007 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw Unusable(
                complaint: "\"\(path)\" can be read by others (mode 0\(mode))",
                cure: "Run: chmod 600 \(path)")
        }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1_024)
        while bytes.count <= mostBytes {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count == 0 { return bytes }
            if count > 0 {
                bytes += chunk[..<count]
            } else if errno != EINTR {
                throw cannot("read", path, errno)
            }
        }
        throw Unusable(
            complaint: "\"\(path)\" is larger than \(mostBytes >> 20) MiB",
            cure: "Give the path of a PEM file.")
    }

    private static func cannot(_ action: String, _ path: String, _ code: CInt) -> Unusable {
        let cure =
            switch code {
            case ENOENT: "Correct the path, or delete `tls` to serve plain TCP."
            case EACCES: "Let the user that runs hermesd read the file and enter its folders."
            default: "See that the path names a file that can be read."
            }
        return Unusable(
            complaint: "cannot \(action) \"\(path)\": \(String(cString: strerror(code)))",
            cure: cure)
    }
}
