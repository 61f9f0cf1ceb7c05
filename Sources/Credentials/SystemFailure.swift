import Glibc
import PlainText

/// A system call that failed on a file, in words for the operator.
package struct SystemFailure: Error, Equatable, Sendable {
    /// What could not be done, for example `open`.
    package let action: String
    package let path: String
    package let errno: CInt

    package init(action: String, path: String, errno: CInt) {
        self.action = action
        self.path = path
        self.errno = errno
    }

    /// The C library's words and the constant's name: `permission denied (EACCES)`.
    package static func text(of code: CInt) -> String {
        // strerror's buffer is the thread's own or constant in this C library, and copied here.
        let words = strerror(code).map { String(cString: $0) } ?? "unknown error"
        return "\(words.lowercased()) (\(names[code] ?? "errno \(code)"))"
    }

    /// The codes that calls on files and sockets return; the C library's own table is not in
    /// Swift's import.
    private static let names: [CInt: String] = [
        EACCES: "EACCES", EADDRNOTAVAIL: "EADDRNOTAVAIL", EBADF: "EBADF", EBUSY: "EBUSY",
        ECONNABORTED: "ECONNABORTED", ECONNREFUSED: "ECONNREFUSED", ECONNRESET: "ECONNRESET",
        EDQUOT: "EDQUOT", EEXIST: "EEXIST", EFBIG: "EFBIG", EHOSTDOWN: "EHOSTDOWN",
        EHOSTUNREACH: "EHOSTUNREACH", EINVAL: "EINVAL", EIO: "EIO", EISDIR: "EISDIR",
        ELOOP: "ELOOP", EMFILE: "EMFILE", ENAMETOOLONG: "ENAMETOOLONG", ENETDOWN: "ENETDOWN",
        ENETUNREACH: "ENETUNREACH", ENFILE: "ENFILE", ENODEV: "ENODEV", ENOENT: "ENOENT",
        ENOLCK: "ENOLCK", ENOMEM: "ENOMEM", ENOSPC: "ENOSPC", ENOTDIR: "ENOTDIR",
        ENOTSOCK: "ENOTSOCK", ENOTTY: "ENOTTY", ENXIO: "ENXIO", EPERM: "EPERM", EPIPE: "EPIPE",
        EPROTOTYPE: "EPROTOTYPE", EROFS: "EROFS", ESTALE: "ESTALE", ETIMEDOUT: "ETIMEDOUT",
        ETXTBSY: "ETXTBSY", EXDEV: "EXDEV",
    ]
}

extension SystemFailure: CustomStringConvertible {
    package var description: String {
        "cannot \(action) \"\(VisibleText.escaped(path))\": \(Self.text(of: errno)). \(cure)"
    }

    private var cure: String {
        switch errno {
        case ENOENT: "Check the path, or create what is missing."
        case EACCES, EPERM: "Run as the user who owns it, or give this user access."
        case EROFS: "The file system is read-only: use a path that can be written."
        case ENOSPC, EDQUOT: "Free space on that file system and run it again."
        case EISDIR, ENOTDIR: "Check the path: a file and a folder are confused."
        case ELOOP: "Check the path: its symbolic links lead in a circle."
        default: "Check the path and the file system."
        }
    }
}
