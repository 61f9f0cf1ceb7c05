import PlainText
import SystemFiles

/// Why a password file cannot be used. The description names file, line and cure; it repeats no
/// part of a hash or password.
package enum PasswordFileError: Error, Equatable, CustomStringConvertible {
    case missing(path: String)
    case notRegularFile(path: String)
    case tooLarge(path: String, byteCount: Int)
    /// A symbolic link that somebody else made, or that leads to somebody else's file.
    case foreignLink(path: String, owner: UInt32)
    case malformed(path: String, [PasswordFileProblem])
    /// Somebody else kept the lock for as long as we were ready to wait.
    case locked(lockPath: String)
    case system(SystemError)

    /// How many problems of one file a description lists.
    private static let listedProblems = 20

    package var description: String {
        switch self {
        case .missing(let path):
            """
            there is no password file "\(VisibleText.escaped(path))". \
            Create it by adding the first user: \
            hermesctl users add NAME --password-file '\(VisibleText.escaped(path))'
            """
        case .notRegularFile(let path):
            """
            the password file "\(VisibleText.escaped(path))" is not a regular file. \
            Name a file, not a folder or a device.
            """
        case .tooLarge(let path, let byteCount):
            """
            the password file "\(VisibleText.escaped(path))" has \(byteCount) bytes, \
            more than \(PasswordFile.maximumByteCount). Check that it is the right file.
            """
        case .foreignLink(let path, let owner):
            """
            the password file "\(VisibleText.escaped(path))" is a symbolic link, and it or what it \
            leads to belongs to user \(owner). Name the file itself, or make the link as this user \
            or as root.
            """
        case .malformed(let path, let problems):
            Self.list(problems, path: path)
        case .locked(let lockPath):
            """
            another program is changing the password file: it holds \
            "\(VisibleText.escaped(lockPath))". Let it finish and run the command again.
            """
        case .system(let failure):
            failure.complaint
        }
    }

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

    private static func list(_ problems: [PasswordFileProblem], path: String) -> String {
        let file = VisibleText.escaped(path)
        var lines = problems.prefix(listedProblems).map { "\(file):\($0.line): \($0.kind)" }
        if problems.count > listedProblems {
            lines.append("\(file): \(problems.count - listedProblems) more lines are malformed.")
        }
        return lines.joined(separator: "\n")
    }
}

/// One line that is neither a user nor a comment nor blank.
package struct PasswordFileProblem: Equatable, Sendable {
    /// Counted from 1.
    package let line: Int
    package let kind: Kind

    package enum Kind: Error, Equatable, Sendable {
        case byteOrderMark
        case carriageReturn
        case noColon
        case userName(UserNameError)
        case hash(UserName, PasswordHashSyntaxError)
        case duplicate(UserName, firstLine: Int)
    }

    package init(line: Int, kind: Kind) {
        self.line = line
        self.kind = kind
    }
}

extension PasswordFileProblem.Kind: CustomStringConvertible {
    package var description: String {
        switch self {
        case .byteOrderMark:
            "the file begins with a byte order mark. Save it as UTF-8 without one."
        case .carriageReturn:
            "the line ends with a carriage return. Save the file with Unix line ends."
        case .noColon:
            """
            there is no ":" between a name and a hash. Write name:hash, begin a comment with \
            "#", or delete the line.
            """
        case .userName(let error):
            error.description
        case .hash(let userName, let error):
            """
            user "\(userName)": \(error). Delete the line and set the password with \
            hermesctl users add.
            """
        case .duplicate(let userName, let firstLine):
            "user \"\(userName)\" is already on line \(firstLine). Delete one of the two lines."
        }
    }
}
