import PlainText
import SystemFiles

/// Why a token file cannot be used. The description names file, line and cure.
package enum TokenFileError: Error, Equatable, CustomStringConvertible {
    case missing(path: String)
    case notRegularFile(path: String)
    case tooLarge(path: String, byteCount: Int)
    /// A symbolic link that somebody else made, or that leads to somebody else's file.
    case foreignLink(path: String, owner: UInt32)
    case foreignOwner(path: String, owner: UInt32)
    case writableByOthers(path: String, mode: UInt32)
    case malformed(path: String, [TokenFileProblem])
    /// Somebody else kept the lock for as long as we were ready to wait.
    case locked(lockPath: String)
    case system(SystemError)

    /// How many problems of one file a description lists.
    private static let listedProblems = 20

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

    package var description: String {
        switch self {
        case .missing(let path):
            """
            there is no token file "\(VisibleText.escaped(path))". \
            Create it by making the first token: \
            hermesctl tokens create NAME --scope SCOPE --tokens-file '\(VisibleText.escaped(path))'
            """
        case .notRegularFile(let path):
            """
            the token file "\(VisibleText.escaped(path))" is not a regular file. \
            Name a file, not a folder or a device.
            """
        case .tooLarge(let path, let byteCount):
            """
            the token file "\(VisibleText.escaped(path))" has \(byteCount) bytes, \
            more than \(TokenFile.maximumByteCount). Check that it is the right file.
            """
        case .foreignLink(let path, let owner):
            """
            the token file "\(VisibleText.escaped(path))" is a symbolic link, and it or what it \
            leads to belongs to user \(owner). Name the file itself, or make the link as this user \
            or as root.
            """
        case .foreignOwner(let path, let owner):
            """
            the token file "\(VisibleText.escaped(path))" belongs to user \(owner), who could make \
            tokens. Give it to the user who runs hermesd, or to root, with chown.
            """
        case .writableByOthers(let path, let mode):
            """
            the token file "\(VisibleText.escaped(path))" has mode \
            0\(String(mode & 0o777, radix: 8)): others than its owner can change it, and so make \
            tokens. Run: chmod 600 '\(VisibleText.escaped(path))'
            """
        case .malformed(let path, let problems):
            Self.list(problems, path: path)
        case .locked(let lockPath):
            """
            another program is changing the token file: it holds \
            "\(VisibleText.escaped(lockPath))". Let it finish and run the command again.
            """
        case .system(let failure):
            failure.complaint
        }
    }

    private static func list(_ problems: [TokenFileProblem], path: String) -> String {
        let file = VisibleText.escaped(path)
        var lines = problems.prefix(listedProblems).map { "\(file):\($0.line): \($0.kind)" }
        if problems.count > listedProblems {
            lines.append("\(file): \(problems.count - listedProblems) more lines are malformed.")
        }
        return lines.joined(separator: "\n")
    }
}

/// One line that is neither a token nor a comment nor blank.
package struct TokenFileProblem: Equatable, Sendable {
    /// Counted from 1.
    package let line: Int
    package let kind: Kind

    package enum Kind: Error, Equatable, Sendable {
        case carriageReturn
        case notUTF8
        case fieldCount(Int)
        case name(TokenNameError)
        case scopes(TokenName)
        case time(TokenName)
        case digest(TokenName)
        case duplicateName(TokenName, firstLine: Int)
        case duplicateDigest(firstLine: Int)
        case tooMany
    }

    package init(line: Int, kind: Kind) {
        self.line = line
        self.kind = kind
    }
}

extension TokenFileProblem.Kind: CustomStringConvertible {
    package var description: String {
        switch self {
        case .carriageReturn:
            "the line ends with a carriage return. Save the file with Unix line ends."
        case .notUTF8:
            "the line is not UTF-8. Delete it, or begin a comment with \"#\"."
        case .fieldCount(let count):
            """
            \(count) words stand where a token has 5: name, scopes, created, expires, digest. \
            Begin a comment with "#", or delete the line and make the token with hermesctl tokens \
            create.
            """
        case .name(let error):
            error.description
        case .scopes(let name):
            """
            token "\(name)": the scopes are not publish, read or admin, with commas between them. \
            Correct the second word.
            """
        case .time(let name):
            """
            token "\(name)": a time is not written as 2025-01-31T08:00:00Z (or never, for the \
            expiry). Correct the third and fourth word.
            """
        case .digest(let name):
            """
            token "\(name)": the digest is not sha256: with 64 lower-case hexadecimal digits. \
            Delete the line and make the token with hermesctl tokens create.
            """
        case .duplicateName(let name, let firstLine):
            "token \"\(name)\" is already on line \(firstLine). Delete one of the two lines."
        case .duplicateDigest(let firstLine):
            "the same token is already on line \(firstLine). Delete one of the two lines."
        case .tooMany:
            "there are more than \(TokenFile.maximumCount) tokens. Delete lines."
        }
    }
}
