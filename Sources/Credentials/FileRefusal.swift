import Glibc

/// Why a file or folder that a configuration names cannot be used; the description names it and the cure.
package protocol FileRefusal: Error, CustomStringConvertible {
    /// It may pass without anybody's doing, as a shortage of descriptors does, and a data directory
    /// whose disk is not there yet. Everything else waits for a person, a missing file too.
    var isTransient: Bool { get }
}

extension SystemFailure {
    /// True but for what permissions and paths forbid.
    package var isTransient: Bool {
        switch errno {
        case EACCES, EPERM, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG: false
        default: true
        }
    }
}

extension CredentialFile.Failure {
    package var isTransient: Bool {
        switch self {
        case .system(let failure): failure.isTransient
        case .missing, .notRegularFile, .foreignLink, .tooLarge: false
        }
    }
}

extension PasswordFileError: FileRefusal {
    package var isTransient: Bool {
        switch self {
        case .system(let failure): failure.isTransient
        case .locked: true
        case .missing, .notRegularFile, .tooLarge, .foreignLink, .malformed: false
        }
    }
}

extension TokenFileError: FileRefusal {
    package var isTransient: Bool {
        switch self {
        case .system(let failure): failure.isTransient
        case .locked: true
        case .missing, .notRegularFile, .tooLarge, .foreignLink, .foreignOwner, .writableByOthers,
            .malformed:
            false
        }
    }
}

/// Everything that keeps a broker from starting with its files: at least one refusal.
package struct FileRefusals: FileRefusal {
    /// One or more lines each.
    package private(set) var problems: [String] = []
    /// All of them may pass.
    package private(set) var isTransient = true

    package init() {}

    /// The value that `body` gives; `nil` when it is refused, which is kept.
    package mutating func collect<Value, Refusal: FileRefusal>(
        _ body: () throws(Refusal) -> Value
    ) -> Value? {
        do throws(Refusal) {
            return try body()
        } catch {
            problems.append(error.description)
            isTransient = isTransient && error.isTransient
            return nil
        }
    }

    package var description: String { problems.joined(separator: "\n") }
}
