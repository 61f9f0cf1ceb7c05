import Authorization
import Credentials
import Glibc
import Hummingbird
import NIOPosix
import PlainText
import Synchronization
import SystemFiles

/// The ACL file of a broker, for the routes. The file stays the one source of truth: a change
/// replaces it whole, and then it is read again as after SIGHUP.
package final class AccessRulesFile: Sendable {
    /// The text of the file with its version.
    struct Text: Sendable {
        let bytes: [UInt8]
        /// A strong entity tag (RFC 9110, section 8.8.3), with its quotation marks.
        let tag: String

        init(_ bytes: [UInt8]) {
            self.bytes = bytes
            tag = "\"\(SHA256Digest(of: bytes).hexadecimal)\""
        }
    }

    /// The longest wait for another program's change.
    private static let patience = Duration.seconds(2)

    private let path: String
    /// Puts the rules of the file into force; returns their number, or `nil` when the broker is too
    /// busy. It may wait for the disk.
    private let putInForce: @Sendable () throws(AccessRulesError) -> Int?

    package init(
        path: String, putInForce: @escaping @Sendable () throws(AccessRulesError) -> Int?
    ) {
        self.path = path
        self.putInForce = putInForce
    }

    func text() async throws(Problem) -> Text {
        try await onFile { [path] () throws(Problem) in try Self.read(path) }
    }

    /// Replaces the text and puts it into force.
    ///
    /// - Parameters:
    ///   - contents: The new text.
    ///   - expected: Entity tags of which the present text must have one; `nil` for any text.
    /// - Returns: The new text, and the number of rules.
    /// - Throws: ``Problem`` that names every malformed line; nothing has changed then.
    func replace(
        with contents: [UInt8], ifMatch expected: [ForeignText]?
    ) async throws(Problem) -> (text: Text, rules: Int) {
        let count = try await onFile { [path, putInForce] () throws(Problem) in
            do throws(AccessRulesError) {
                _ = try AccessRules(parsing: contents, path: "line")
            } catch {
                throw Self.invalid(error)
            }
            try Self.write(contents, to: path, expected)
            do throws(AccessRulesError) {
                return try putInForce()
            } catch {
                throw Self.unusable("\(error)")
            }
        }
        guard let count else {
            throw Problem(
                .overloaded,
                "The rules are in the file, and the broker is too busy to put them into force.",
                fix: "Send the request again.", headers: [.retryAfter: "5"])
        }
        return (Text(contents), count)
    }

    private static func write(
        _ contents: [UInt8], to path: String, _ expected: [ForeignText]?
    ) throws(Problem) {
        do throws(WholeFile.Failure) {
            try WholeFile.checkLink(path)
        } catch {
            throw unusable(error.words(path, expected: "an ACL file").complaint)
        }
        try FileChange.underLock(
            path, lockTimeout: patience,
            describing: { (failure: FileLock.Failure) -> Problem in
                switch failure {
                case .busy(let lockPath):
                    unusable("Another program is changing the file: it holds \"\(lockPath)\".")
                case .system(let error): unusable(error.complaint)
                }
            }
        ) { (target) throws(Problem) -> (contents: [UInt8]?, result: Void) in
            guard let expected else { return (contents, ()) }
            let present = try read(target)
            guard expected.contains("*") || expected.contains(ForeignText(present.tag)) else {
                throw Problem(
                    .rulesChanged,
                    "The access rules have changed meanwhile: their ETag is \(present.tag) now.",
                    field: "If-Match",
                    fix: "Read them again with GET /v1/access-rules, and make the change anew.")
            }
            return (present.bytes == contents ? nil : contents, ())
        }
    }

    private static func read(_ path: String) throws(Problem) -> Text {
        do throws(WholeFile.Failure) {
            return Text(
                try WholeFile(path, maximumByteCount: AccessRules.maximumByteCount).bytes)
        } catch {
            throw unusable(error.words(path, expected: "an ACL file").complaint)
        }
    }

    private static func invalid(_ error: AccessRulesError) -> Problem {
        let first = error.problems.first
        return Problem(
            .invalidRules,
            "\(error)".split(separator: "\n").map { $0.replacing("line:", with: "line ") }
                .joined(separator: "\n"),
            field: first?.line.map { "line \($0)" },
            fix: "Correct \(error.problems.count == 1 ? "that line" : "those lines"), and send all "
                + "of it again; nothing has changed.")
    }

    private static func unusable(_ complaint: String) -> Problem {
        Problem(
            .accessFile, complaint.visible(limit: 1_024),
            fix: "See to the file on the broker's machine (acl_file), and ask again.",
            headers: [.retryAfter: "5"])
    }

    /// Works on a thread that may wait for a disk.
    private func onFile<Value: Sendable>(
        _ work: @escaping @Sendable () throws(Problem) -> Value
    ) async throws(Problem) -> Value {
        do {
            return try await NIOThreadPool.singleton.runIfActive { try work() }
        } catch let problem as Problem {
            throw problem
        } catch {
            throw Self.unusable("\(error)")
        }
    }
}
