import Glibc
import PlainText
import SystemFiles

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

    /// All bytes of the file. With `isSecret` the file is refused if anyone but its owner and its group
    /// may read it, or anyone but its owner may write it; there is no copy of the bytes, and the caller
    /// erases them.
    static func read(_ path: String, isSecret: Bool) throws(Unusable) -> [UInt8] {
        let most = isSecret ? mostSecretBytes : mostBytes
        var file: WholeFile
        do throws(WholeFile.Failure) {
            file = try WholeFile(path, maximumByteCount: most, isSecret: isSecret)
        } catch {
            throw unusable(path, error, most: most)
        }
        guard !isSecret || file.status.mode & 0o027 == 0 else {
            file.bytes.erase()
            throw Unusable(
                complaint: """
                    \(VisibleText.quoted(path)) is open to others \
                    (mode 0\(String(file.status.mode & 0o777, radix: 8)))
                    """,
                cure: "Run chmod 600 on it; its group may read it (640), nobody else.")
        }
        return file.bytes
    }

    private static func unusable(
        _ path: String, _ failure: WholeFile.Failure, most: Int
    ) -> Unusable {
        let shown = VisibleText.quoted(path)
        switch failure {
        case .missing:
            return cannot(SystemError(call: "open", subject: path, code: ENOENT))
        case .notRegularFile:
            return Unusable(
                complaint: "\(shown) is no regular file", cure: "Give the path of a PEM file.")
        case .foreignLink(let owner):
            return Unusable(
                complaint:
                    "\(shown) is a symbolic link, and it or what it leads to belongs to user \(owner)",
                cure: """
                    Name the file itself, or make the link as the user that runs hermesd or as root.
                    """)
        case .tooLarge:
            return Unusable(
                complaint: "\(shown) is larger than \(most >> 10) KiB",
                cure: "Give the path of a PEM file.")
        case .system(let error): return cannot(error)
        }
    }

    private static func cannot(_ error: SystemError) -> Unusable {
        let cure =
            switch error.code {
            case ENOENT: "Correct the path, or write the file."
            case EACCES: "Let the user that runs hermesd read the file and enter its folders."
            case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
            default: "See that the path names a file that can be read."
            }
        return Unusable(
            complaint: """
                cannot \(error.verb) \(VisibleText.quoted(error.subject)): \
                \(SystemError.words(for: error.code))
                """,
            cure: cure, isTransient: [EMFILE, ENFILE, ENOMEM, EAGAIN, EIO].contains(error.code))
    }
}
