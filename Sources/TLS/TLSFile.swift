import Glibc
import PlainText

/// Reads a file with certificates or a key whole, within a bound.
enum TLSFile {
    struct Unusable: Error {
        let complaint: String
        let cure: String
        /// Nothing is wrong with the file: it may be read when the system has more to give.
        var isTransient = false
    }

    /// A chain has some 5 KB, a bundle of authorities some 200, a revocation list perhaps megabytes.
    private static let mostBytes = 16 << 20

    /// The largest key has some 12 KB.
    private static let mostSecretBytes = 64 << 10

    /// All of its bytes. With `isSecret` the file is refused when anyone may read it beside its owner
    /// and its group, or write it beside its owner; the caller wipes the bytes, of which there is no copy.
    static func read(_ path: String, isSecret: Bool) throws(Unusable) -> [UInt8] {
        var link = stat()
        let isLink = lstat(path, &link) == 0 && link.st_mode & S_IFMT == S_IFLNK
        // A FIFO without a writer would hold a plain open for ever.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw cannot("open", path, errno) }
        defer { _ = close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw cannot("examine", path, errno) }
        if isLink { try checkLink(path, ownedBy: [link.st_uid, status.st_uid]) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw Unusable(
                complaint: "\(VisibleText.quoted(path)) is no regular file",
                cure: "Give the path of a PEM file.")
        }
        guard !isSecret || status.st_mode & 0o027 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw Unusable(
                complaint: "\(VisibleText.quoted(path)) is open to others (mode 0\(mode))",
                cure: "Run chmod 600 on it; its group may read it (640), nobody else.")
        }
        let most = isSecret ? mostSecretBytes : mostBytes
        var bytes: [UInt8] = []
        // So that it never moves, and leaves nothing behind.
        bytes.reserveCapacity(isSecret ? most + chunkBytes : min(Int(status.st_size), most))
        var chunk = [UInt8](repeating: 0, count: chunkBytes)
        defer { if isSecret { chunk.erase() } }
        while bytes.count <= most {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count == 0 { return bytes }
            if count > 0 {
                bytes += chunk[..<count]
            } else if errno != EINTR {
                throw cannot("read", path, errno)
            }
        }
        if isSecret { bytes.erase() }
        throw Unusable(
            complaint: "\(VisibleText.quoted(path)) is larger than \(most >> 10) KiB",
            cure: "Give the path of a PEM file.")
    }

    /// Refuses a link that belongs to another user, or leads to that user's file: the user could
    /// otherwise choose which certificates the broker shows or trusts.
    private static func checkLink(
        _ path: String, ownedBy owners: [uid_t]
    ) throws(Unusable) {
        guard let stranger = owners.first(where: { $0 != 0 && $0 != geteuid() }) else { return }
        throw Unusable(
            complaint:
                "\(VisibleText.quoted(path)) is a symbolic link, and it or what it leads to belongs to user "
                + "\(stranger)",
            cure: "Name the file itself, or make the link as the user that runs hermesd or as root."
        )
    }

    private static let chunkBytes = 64 << 10

    private static func cannot(_ action: String, _ path: String, _ code: CInt) -> Unusable {
        let cure =
            switch code {
            case ENOENT: "Correct the path, or write the file."
            case EACCES: "Let the user that runs hermesd read the file and enter its folders."
            case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
            default: "See that the path names a file that can be read."
            }
        return Unusable(
            complaint:
                "cannot \(action) \(VisibleText.quoted(path)): \(String(cString: strerror(code)))",
            cure: cure, isTransient: [EMFILE, ENFILE, ENOMEM, EAGAIN, EIO].contains(code))
    }
}
