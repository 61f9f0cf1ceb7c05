import Glibc
import PlainText

/// A system call failed for a reason outside the program, such as a full disk.
public struct SystemError: Error, Hashable, Sendable {
    /// The call, such as `bind`; or, where its name would not do, the attempt in words.
    public let call: String
    /// The path or address that it was applied to.
    public let subject: String
    /// The value of `errno`.
    public let code: CInt

    public init(call: String, subject: String, code: CInt) {
        self.call = call
        self.subject = subject
        self.code = code
    }

    /// False if permissions or the path forbid the call; everything else may pass.
    package var isTransient: Bool {
        switch code {
        case EACCES, EPERM, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG: false
        default: true
        }
    }
}

// MARK: In words

extension SystemError: CustomStringConvertible {
    /// One line for a log: `bind 127.0.0.1:1883: Address already in use`.
    public var description: String {
        "\(call) \(VisibleText.escaped(subject)): \(Self.words(for: code))"
    }

    /// Sentences for the operator, with the cure; the subject is a path:
    /// `cannot open "/etc/users": permission denied (EACCES). Run as the user who owns it, ...`
    package var complaint: String {
        "cannot \(verb) \"\(VisibleText.escaped(subject))\": \(Self.reason(for: code)). \(cure)"
    }

    /// The attempt as it stands after "cannot": `open`, `write to disk`.
    package var verb: String {
        switch call {
        case "fstat": "examine"
        case "fsync": "write to disk"
        case "fchown": "set the owner of"
        case "fchmod": "set the mode of"
        case "flock": "lock"
        case "rename": "replace"
        default: call
        }
    }

    /// The C library's words: `Permission denied`.
    package static func words(for code: CInt) -> String {
        // The buffer of strerror is constant or the thread's own in this C library; it is copied.
        strerror(code).map { String(cString: $0) } ?? "Unknown error"
    }

    /// The C library's words and the constant's name: `permission denied (EACCES)`.
    package static func reason(for code: CInt) -> String {
        "\(words(for: code).lowercased()) (\(names[code] ?? "errno \(code)"))"
    }

    /// A sentence that tells the operator how to make the call succeed.
    package var cure: String {
        switch code {
        case ENOENT: "Check the path, or create what is missing."
        case EACCES, EPERM: "Run as the user who owns it, or give this user access."
        case EROFS: "The file system is read-only: use a path that can be written."
        case ENOSPC, EDQUOT: "Free space on that file system and run it again."
        case EISDIR, ENOTDIR: "Check the path: a file and a folder are confused."
        case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
        case ELOOP: "Check the path: its symbolic links lead in a circle."
        default: "Check the path and the file system."
        }
    }

    /// The codes that calls on files and sockets return; the C library's own table is not in Swift's
    /// import.
    private static let names: [CInt: String] = [
        EACCES: "EACCES", EADDRNOTAVAIL: "EADDRNOTAVAIL", EAGAIN: "EAGAIN", EBADF: "EBADF",
        EBUSY: "EBUSY", ECONNABORTED: "ECONNABORTED", ECONNREFUSED: "ECONNREFUSED",
        ECONNRESET: "ECONNRESET", EDQUOT: "EDQUOT", EEXIST: "EEXIST", EFBIG: "EFBIG",
        EHOSTDOWN: "EHOSTDOWN", EHOSTUNREACH: "EHOSTUNREACH", EINVAL: "EINVAL", EIO: "EIO",
        EISDIR: "EISDIR", ELOOP: "ELOOP", EMFILE: "EMFILE", ENAMETOOLONG: "ENAMETOOLONG",
        ENETDOWN: "ENETDOWN", ENETUNREACH: "ENETUNREACH", ENFILE: "ENFILE", ENODEV: "ENODEV",
        ENOENT: "ENOENT", ENOLCK: "ENOLCK", ENOMEM: "ENOMEM", ENOSPC: "ENOSPC",
        ENOTDIR: "ENOTDIR", ENOTSOCK: "ENOTSOCK", ENOTSUP: "ENOTSUP", ENOTTY: "ENOTTY",
        ENXIO: "ENXIO", EPERM: "EPERM", EPIPE: "EPIPE", EPROTOTYPE: "EPROTOTYPE", EROFS: "EROFS",
        ESTALE: "ESTALE", ETIMEDOUT: "ETIMEDOUT", ETXTBSY: "ETXTBSY", EXDEV: "EXDEV",
    ]
}
