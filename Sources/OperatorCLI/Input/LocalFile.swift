import Credentials
import Glibc

/// Reading whole files and descriptors, within a bound.
enum LocalFile {
    /// Everything in the file, or its first `maximumByteCount + 1` bytes, so that the caller sees
    /// that there is too much.
    static func read(path: String, maximumByteCount: Int) throws(SystemFailure) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else {
            throw SystemFailure(action: "open", path: path, errno: errno)
        }
        defer { close(descriptor) }
        return try read(descriptor, name: path, maximumByteCount: maximumByteCount)
    }

    /// The same from a descriptor that stays open; `name` is for the error.
    static func read(
        _ descriptor: CInt, name: String, maximumByteCount: Int
    ) throws(SystemFailure) -> [UInt8] {
        var contents: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while contents.count <= maximumByteCount {
            let wanted = min(chunk.count, maximumByteCount + 1 - contents.count)
            let count = Glibc.read(descriptor, &chunk, wanted)
            if count == 0 { break }
            if count > 0 {
                contents += chunk[..<count]
            } else if errno != EINTR {
                throw SystemFailure(action: "read", path: name, errno: errno)
            }
        }
        return contents
    }
}
