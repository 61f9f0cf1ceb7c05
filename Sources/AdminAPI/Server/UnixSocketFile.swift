import Glibc
import SystemFiles

/// The file of a Unix socket, to which only its owner can ever connect.
///
/// A socket file gets its mode from the process's umask when it is bound. So it is bound in a new
/// directory of mode 0700, set to mode 0600, and then renamed.
struct UnixSocketFile: Sendable {
    /// The path for clients.
    let path: String
    /// The path at which it is bound first.
    let draftPath: String
    private let draftDirectory: String

    /// Longest path that fits a socket address.
    private static let maximumPathBytes = 107

    /// Prepares the path: removes an earlier process's socket, and creates the directory.
    ///
    /// - Throws: ``AdminServerError`` when the path has another file or a process listens on it.
    init(path: String) throws(AdminServerError) {
        self.path = path
        let parent = FilePath.folder(of: path)
        guard parent.utf8.count + "/.admin.XXXXXX/s".utf8.count <= Self.maximumPathBytes,
            path.utf8.count <= Self.maximumPathBytes
        else {
            throw .unixSocket(
                path: path, reason: "the path is too long for a socket",
                fix: "Use one of at most 90 bytes.")
        }
        try Self.removeStale(path)

        var template = Array((parent + "/.admin.XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Self.failure(path, "cannot make a directory beside it", errno)
        }
        draftDirectory = String(
            decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        draftPath = draftDirectory + "/s"
    }

    /// Renames the bound and listening socket to its path.
    func publish() throws(AdminServerError) {
        guard chmod(draftPath, 0o600) == 0 else {
            throw Self.failure(path, "cannot set its mode", errno)
        }
        guard rename(draftPath, path) == 0 else {
            throw Self.failure(path, "cannot move it to its place", errno)
        }
        rmdir(draftDirectory)
    }

    /// Removes the socket at the end, unless another process has replaced it.
    func remove(published: Bool) {
        if published, !Self.isListening(path) { unlink(path) }
        unlink(draftPath)
        rmdir(draftDirectory)
    }

    /// Removes a socket without a listener, and nothing else.
    private static func removeStale(_ path: String) throws(AdminServerError) {
        guard let status = FileStatus(ofLink: path) else {
            if errno == ENOENT { return }
            throw failure(path, "cannot look at it", errno)
        }
        guard status.isSocket else {
            throw .unixSocket(
                path: path, reason: "there is a file that is no socket",
                fix: "Remove it, or set another path.")
        }
        guard !isListening(path) else {
            throw .unixSocket(
                path: path, reason: "another process listens on it",
                fix: "Stop that process, or set another path.")
        }
        guard unlink(path) == 0 else { throw failure(path, "cannot remove the old socket", errno) }
    }

    /// True unless the connection is refused for lack of a listener.
    private static func isListening(_ path: String) -> Bool {
        let descriptor = socket(
            AF_UNIX,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
                | Int32(SOCK_NONBLOCK.rawValue), 0)
        guard descriptor >= 0 else { return true }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        return !(result != 0 && (errno == ECONNREFUSED || errno == ENOENT))
    }

    private static func failure(_ path: String, _ what: String, _ code: Int32) -> AdminServerError {
        .unixSocket(
            path: path, reason: "\(what): \(SystemError.words(for: code))",
            fix: "Let the broker's user write to the directory, or set another path.")
    }
}
