import Credentials
import Glibc

extension AccessRules {
    /// Room for the most rules that a file may have.
    static let maximumByteCount = 16 * 1024 * 1024

    /// Reads an ACL file and checks all of it; look at ``accessWarning`` afterwards.
    ///
    /// - Throws: ``AccessRulesError`` with every problem: the file is missing or cannot be read (also
    ///   because no descriptor is free), or lines of it are no rules. A broker does not start then, and
    ///   one that runs keeps the rules that it has.
    public static func load(path: String) throws(AccessRulesError) -> AccessRules {
        let status: stat
        var contents: [UInt8] = []
        do throws(SystemFailure) {
            let file = try OpenFile(path, flags: O_RDONLY)
            status = try file.status()
            if status.isRegularFile {
                contents = try file.readAll(maximumByteCount: maximumByteCount)
            }
        } catch {
            throw failure(path, error)
        }
        guard status.isRegularFile else {
            throw error(path, "this is not a regular file", "Name a file, no folder or device.")
        }
        guard contents.count <= maximumByteCount else {
            throw error(
                path, "the file has more than \(maximumByteCount) bytes",
                "Check that it is the right file.")
        }
        return try AccessRules(parsing: contents, path: path, mode: status.st_mode)
    }

    /// Reads the contents of an ACL file; `path` and `mode` are for messages.
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

    private static func failure(_ path: String, _ failure: SystemFailure) -> AccessRulesError {
        let cure =
            switch failure.errno {
            case ENOENT: "Correct acl_file, or write the file; an empty one denies everything."
            case EACCES: "Let the user that runs the broker read it, and enter its folders."
            case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
            default: "Check the path and the file system."
            }
        return error(
            path, "cannot \(failure.action) the ACL file: \(SystemFailure.text(of: failure.errno))",
            cure)
    }

    private static func error(
        _ path: String, _ complaint: String, _ cure: String
    ) -> AccessRulesError {
        AccessRulesError(
            path: path, problems: [AccessProblem(line: nil, complaint, cure: cure)],
            omittedCount: 0)
    }
}
