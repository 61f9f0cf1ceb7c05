import PlainText
import SystemFiles

/// The reason for which a ``LineFile`` cannot be used. The description names file, line and cure; it
/// repeats no part of a secret.
package enum LineFileError<Format: LineFormat>: FileRefusal, Equatable {
    case missing(path: String)
    case notRegularFile(path: String)
    case tooLarge(path: String, byteCount: Int)
    /// The path is a symbolic link, and it or its target belongs to another user.
    case foreignLink(path: String, owner: UInt32)
    case foreignOwner(path: String, owner: UInt32)
    case writableByOthers(path: String, mode: UInt32)
    case malformed(path: String, [LineFileProblem<Format>])
    /// Another program kept the lock until the time was up.
    case locked(lockPath: String)
    case system(SystemError)

    init(_ failure: WholeFile.Failure, path: String) {
        self =
            switch failure {
            case .missing: .missing(path: path)
            case .notRegularFile: .notRegularFile(path: path)
            case .foreignLink(let owner): .foreignLink(path: path, owner: owner)
            case .tooLarge(let byteCount): .tooLarge(path: path, byteCount: byteCount)
            case .system(let failure): .system(failure)
            }
    }

    init(_ failure: FileLock.Failure) {
        self =
            switch failure {
            case .busy(let lockPath): .locked(lockPath: lockPath)
            case .system(let failure): .system(failure)
            }
    }

    package var isTransient: Bool {
        switch self {
        case .system(let failure): failure.isTransient
        case .locked: true
        case .missing, .notRegularFile, .tooLarge, .foreignLink, .foreignOwner, .writableByOthers,
            .malformed:
            false
        }
    }

    package var description: String {
        switch self {
        case .missing(let path):
            """
            there is no \(Self.named(path)). Create it by \(Format.creation) \
            '\(VisibleText.escaped(path))'
            """
        case .notRegularFile(let path):
            """
            the \(Self.named(path)) is not a regular file. Name a file, not a folder or a device.
            """
        case .tooLarge(let path, let byteCount):
            """
            the \(Self.named(path)) has \(byteCount) bytes, more than \(Format.maximumByteCount). \
            Check that it is the right file.
            """
        case .foreignLink(let path, let owner):
            """
            the \(Self.named(path)) \(WholeFile.Failure.linkComplaint(owner)). \
            Name the file itself, or make the link as this user or as root.
            """
        case .foreignOwner(let path, let owner):
            """
            the \(Self.named(path)) belongs to user \(owner), who could \(Self.threat). Give it to \
            the user who runs hermesd, or to root, with chown.
            """
        case .writableByOthers(let path, let mode):
            """
            the \(Self.named(path)) has mode 0\(String(mode & 0o777, radix: 8)): others than its \
            owner can change it, and so \(Self.threat). Run: chmod 600 '\(VisibleText.escaped(path))'
            """
        case .malformed(let path, let problems):
            Self.list(problems, path: path)
        case .locked(let lockPath):
            """
            another program is changing the \(Format.noun): it holds \
            "\(VisibleText.escaped(lockPath))". Let it finish and run the command again.
            """
        case .system(let failure):
            failure.complaint
        }
    }

    private static func named(_ path: String) -> String {
        "\(Format.noun) \"\(VisibleText.escaped(path))\""
    }

    private static var threat: String { Format.threat ?? "change it" }

    private static func list(_ problems: [LineFileProblem<Format>], path: String) -> String {
        let mostListed = 20
        let file = VisibleText.escaped(path)
        var lines = problems.prefix(mostListed).map { "\(file):\($0.line): \($0.kind)" }
        if problems.count > mostListed {
            lines.append("\(file): \(problems.count - mostListed) more lines are malformed.")
        }
        return lines.joined(separator: "\n")
    }
}

/// A line that is neither an entry nor a comment nor blank.
package struct LineFileProblem<Format: LineFormat>: Equatable, Sendable {
    /// Counts from 1.
    package let line: Int
    package let kind: Kind

    package enum Kind: Error, Equatable, Sendable, CustomStringConvertible {
        case byteOrderMark
        case carriageReturn
        case entry(Format.Complaint)

        package var description: String {
            switch self {
            case .byteOrderMark:
                "the file begins with a byte order mark. Save it as UTF-8 without one."
            case .carriageReturn:
                "the line ends with a carriage return. Save the file with Unix line ends."
            case .entry(let complaint):
                complaint.description
            }
        }
    }

    package init(line: Int, kind: Kind) {
        self.line = line
        self.kind = kind
    }
}
