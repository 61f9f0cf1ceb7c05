import Glibc
import SystemFiles

/// The file of a Unix socket, which only its owner can ever connect to.
///
/// A socket file gets its mode when it is bound, from the umask of the whole process. So it is
/// bound inside a fresh directory of mode 0700, given mode 0600, and then renamed to its place.
struct UnixSocketFile: Sendable {
    /// Where clients find it.
    let path: String
    /// Where it is bound first.
    let draftPath: String
    private let draftDirectory: String

    /// Longest path that fits a socket address.
    private static let maximumPathBytes = 107

    /// Makes room for the socket: removes what an earlier process left, and makes the directory.
    ///
    /// - Throws: ``AdminServerError`` when the path is taken by something else or by a process
    ///   that listens.
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

    /// Puts the bound and listening socket in its place.
    func publish() throws(AdminServerError) {
        guard chmod(draftPath, 0o600) == 0 else {
            throw Self.failure(path, "cannot set its mode", errno)
        }
        guard rename(draftPath, path) == 0 else {
            throw Self.failure(path, "cannot move it to its place", errno)
        }
        rmdir(draftDirectory)
    }

    /// Removes the socket at the end, unless another process has put its own there.
    func remove(published: Bool) {
        if published, !Self.isListening(path) { unlink(path) }
        unlink(draftPath)
        rmdir(draftDirectory)
    }

    /// Removes a socket that nobody listens on, and nothing else.
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

    /// True unless connecting is refused because nobody listens.
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
