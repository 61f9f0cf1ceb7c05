import Glibc
import PlainText
import SystemFiles

extension AccessRules {
    /// Largest size of an ACL file in bytes; enough for the largest number of rules.
    package static let maximumByteCount = 16 * 1024 * 1024

    /// Reads an ACL file and checks all of it. The caller also logs ``accessWarning``.
    ///
    /// - Throws: ``AccessRulesError`` with every problem: the file is missing, cannot be read (for
    ///   instance because no descriptor is free), or has malformed lines. On this error a broker
    ///   does not start, and a running one keeps its rules.
    public static func load(path: String) throws(AccessRulesError) -> AccessRules {
        let file: WholeFile
        do throws(WholeFile.Failure) {
            file = try WholeFile(path, maximumByteCount: maximumByteCount)
        } catch {
            var refusal = describe(error, path)
            refusal.isTransient = error.isTransient
            throw refusal
        }
        return try AccessRules(parsing: file.bytes, path: path, mode: file.status.mode)
    }

    /// Checks the content of an ACL file. `path` and `mode` appear in messages only.
    ///
    /// - Throws: ``AccessRulesError`` that names every malformed line.
    public convenience init(
        parsing contents: [UInt8], path: String, mode: mode_t = 0o600
    ) throws(AccessRulesError) {
        var parser = AccessRulesParser()
        parser.parse(contents)
        guard parser.problems.isEmpty else {
            throw AccessRulesError(
                path: path, problems: parser.problems, omittedCount: parser.omittedCount)
        }
        self.init(parser.rules, accessWarning: Self.warning(path, mode))
    }

    private static func warning(_ path: String, _ mode: mode_t) -> String? {
        guard mode & (S_IWGRP | S_IWOTH) != 0 else { return nil }
        let file = VisibleText.escaped(path)
        return """
            the ACL file "\(file)" has mode 0\(String(mode & 0o777, radix: 8)): others than its owner \
            can change it. Run: chmod go-w '\(file)'
            """
    }

    private static func describe(
        _ failure: WholeFile.Failure, _ path: String
    ) -> AccessRulesError {
        switch failure {
        case .missing:
            return error(
                path, "cannot open the ACL file: \(SystemError.reason(for: ENOENT))",
                "Correct acl_file, or write the file; an empty one denies everything.")
        case .notRegularFile:
            return error(
                path, "this is not a regular file", "Name a file, no folder or device.")
        case .foreignLink(let owner):
            return error(
                path, "this \(WholeFile.Failure.linkComplaint(owner))",
                "Make a link and a file that belong to the broker's user or to root, or name the file itself."
            )
        case .tooLarge(let byteCount):
            return error(
                path, "the file has \(byteCount) bytes; at most \(maximumByteCount) are read",
                "Check that it is the right file.")
        case .system(let cause):
            let cure =
                switch cause.code {
                case EACCES: "Let the user that runs the broker read it, and enter its folders."
                case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
                default: "Check the path and the file system."
                }
            return error(
                path,
                "cannot \(cause.verb) the ACL file: \(SystemError.reason(for: cause.code))",
                cure)
        }
    }

    private static func error(
        _ path: String, _ complaint: String, _ cure: String
    ) -> AccessRulesError {
        AccessRulesError(
            path: path, problems: [AccessProblem(line: nil, complaint, cure: cure)],
            omittedCount: 0)
    }
}
