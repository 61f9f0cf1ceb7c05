import Glibc
import PlainText
import SystemFiles

/// Reads a file with certificates or a key whole, within a bound.
enum TLSFile {
    /// A file cannot be used.
    struct Unusable: Error {
        let complaint: String
        let cure: String
        /// The file itself is good: it may be read once the system has more descriptors or memory.
        var isTransient = false
    }

    /// A chain has some 5 KB, a bundle of authorities some 200, a revocation list perhaps megabytes.
    private static let mostBytes = 16 << 20

    /// The largest key has some 12 KB.
    private static let mostSecretBytes = 64 << 10

    /// Reads the bytes of a file. With `isSecret` a file is refused that anyone but its owner and its
    /// group may read, or anyone but its owner may write; no copy of the bytes stays in memory, and
    /// the caller erases them.
    static func read(_ path: String, isSecret: Bool) throws(Unusable) -> [UInt8] {
        var file: WholeFile
        do throws(WholeFile.Failure) {
            file = try WholeFile(
                path, maximumByteCount: isSecret ? mostSecretBytes : mostBytes, isSecret: isSecret)
        } catch {
            throw unusable(path, error)
        }
        guard !isSecret || file.status.mode & 0o027 == 0 else {
            // The wrong file is the mistake, not its mode: a certificate may be read by everybody.
            let isCertificate = PEMKind.isCertificateWithoutKey(file.bytes)
            file.bytes.erase()
            guard !isCertificate else {
                throw Unusable(
                    complaint: "\(VisibleText.quoted(path)) holds a certificate and no key",
                    cure: PEMKind.swappedCure)
            }
            throw Unusable(
                complaint: """
                    \(VisibleText.quoted(path)) is open to others \
                    (mode 0\(String(file.status.mode & 0o777, radix: 8)))
                    """,
                cure: "Run chmod 600 on it; its group may read it (640), nobody else.")
        }
        return file.bytes
    }

    private static func unusable(_ path: String, _ failure: WholeFile.Failure) -> Unusable {
        switch failure {
        case .missing: return cannot(SystemError(call: "open", subject: path, code: ENOENT))
        case .system(let error): return cannot(error)
        case .notRegularFile, .foreignLink, .tooLarge:
            let (complaint, cure) = failure.words(path, expected: "a PEM file")
            return Unusable(complaint: complaint, cure: cure)
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
