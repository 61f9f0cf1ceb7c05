import Glibc
import SystemFiles

/// Reads a configuration file of bounded size.
enum ConfigurationFile {
    /// A file with every key and its comments has about 5 KB.
    static let maximumBytes = 1 << 20

    /// Reads the file's bytes.
    ///
    /// - Throws: `RefusedValue` when the file cannot be opened or read, is not a regular file, or
    ///   is too large.
    static func read(_ path: String) throws(RefusedValue) -> [UInt8] {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw RefusedValue(
                complaint: "the path of the configuration file is empty or holds a NUL",
                cure: "Give --config the path of a YAML file.")
        }
        do throws(WholeFile.Failure) {
            return try WholeFile(path, maximumByteCount: maximumBytes).bytes
        } catch {
            throw refusal(error)
        }
    }

    private static func refusal(_ failure: WholeFile.Failure) -> RefusedValue {
        switch failure {
        case .missing: cannot("open", ENOENT)
        case .notRegularFile(let isFolder):
            RefusedValue(
                complaint: isFolder ? "this is a folder" : "this is not a regular file",
                cure: "Give --config the path of a YAML file.")
        case .foreignLink(let owner):
            RefusedValue(
                complaint: "this \(WholeFile.Failure.linkComplaint(owner))",
                cure: """
                    Make a link and a file that belong to the broker's user or to root, or name the \
                    file itself.
                    """)
        case .tooLarge:
            RefusedValue(
                complaint: "the file is larger than \(Quantity.size(maximumBytes))",
                cure: "Give --config the path of a YAML file.")
        case .system(let error): cannot(error.verb, error.code)
        }
    }

    private static func cannot(_ action: String, _ code: CInt) -> RefusedValue {
        let (reason, cure) =
            switch code {
            case ENOENT:
                (
                    "no such file (ENOENT)",
                    "Correct the path, or write the file; a broker without --config runs with the built-in settings."
                )
            case EACCES:
                (
                    "permission denied (EACCES)",
                    "Let the user that runs the broker read the file and enter its folders."
                )
            case ENOTDIR:
                ("a part of the path is not a folder (ENOTDIR)", "Correct the path.")
            case ELOOP:
                ("too many symbolic links (ELOOP)", "Correct the links in the path.")
            case EMFILE, ENFILE:
                (
                    "no descriptor is free (error \(code))",
                    "Raise the limit of open files (ulimit -n)."
                )
            default:
                ("system error \(code)", "Look the number up with `errno \(code)`.")
            }
        return RefusedValue(complaint: "cannot \(action) the file: \(reason)", cure: cure)
    }
}
