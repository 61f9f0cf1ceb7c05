import Glibc
import Testing

@testable import Authorization

@Suite("Reading ACL files")
struct AccessRulesParserTests {
    @Test(
        "each malformed line is reported with its error",
        arguments: [
            ("permit everyone both #", "begins with \"permit\""),
            ("Allow everyone both #", "begins with \"Allow\""),
            ("\"allow\" everyone both #", "begins with \"allow\""),
            ("allow", "does not say whom"), ("allow both #", "\"both\" does not say whom"),
            ("allow user", "user stands without a name"),
            ("allow user \"\" both #", "user stands without a name"),
            ("allow client", "client stands without"),
            ("allow user alice", "does not say what"),
            ("allow user alice #", "\"#\" is no action"),
            ("allow user alice read #", "\"read\" is no action"),
            ("allow user alice both", "there is no topic filter"),
            ("allow user alice both \"\"", "is empty"),
            ("allow user alice both a b", "\"b\" stands behind"),
            ("allow user alice both a # c", "\"#\" stands behind"),
            ("allow user alice both a+/b", "wildcard beside"),
            ("allow user alice both a/#b", "wildcard beside"),
            ("allow user alice both ##", "wildcard beside"),
            ("allow user alice both #/a", "# before its end"),
            ("allow user alice both x-%u/a", "%u or %c beside"),
            ("allow user alice both %u%c", "%u or %c beside"),
            ("allow anonymous both a/%u", "no user name"),
            ("allow user alice both $share/g/#", "shared subscription"),
            ("allow user alice both \"a", "quote is not closed"),
            ("allow user \"a\"b both #", "followed by other text"),
            ("allow user \"a\\n\" both #", "backslash"),
            ("allow everyone both #\r", "carriage return"),
            ("allow user a\u{200B}b both #", "invisible character U+200B"),
            ("allow user a\u{0} both #", "invisible character U+0"),
        ])
    func malformed(line: String, complaint: String) throws {
        let error = #expect(throws: AccessRulesError.self) {
            try rules("allow everyone both a\n\(line)\n")
        }
        let problem = try #require(error?.problems.first)
        #expect(error?.problems.count == 1)
        #expect(problem.line == 2)
        #expect(problem.complaint.contains(complaint), "\(problem.complaint)")
        #expect(!problem.cure.isEmpty)
        #expect(error?.description.hasPrefix("acl:2: ") == true)
    }

    @Test("all problems are found in one pass, up to a bound")
    func allProblems() throws {
        let error = #expect(throws: AccessRulesError.self) {
            try rules(String(repeating: "what\n", count: 130))
        }
        #expect(error?.problems.count == 100)
        #expect(error?.omittedCount == 30)
        #expect(error?.description.hasSuffix("and 30 more. Correct those above first.") == true)
    }

    @Test("bytes that are no text are refused, and messages are safe to show")
    func hostileContents() throws {
        for contents: [UInt8] in [
            [0xEF, 0xBB, 0xBF, 0x23], [0x61, 0xFF], Array("\u{1B}[2Jx".utf8),
        ] {
            let error = #expect(throws: AccessRulesError.self) {
                try AccessRules(parsing: contents, path: "a\u{1B}cl")
            }
            #expect(error?.description.utf8.contains(0x1B) == false)
        }
    }

    @Test("a rule is shown in the words of the file and reads back the same")
    func description() throws {
        let text = """
            allow user "Ann \\"S\\"" client c both a/+/#
            deny everyone publish "a b"
            allow anonymous client "*" subscribe %c/#
            allow user * client "x y" both $SYS/#
            allow user "tab\tbed" both a
            allow user "a b\\"\u{301}c" both a
            """
        let once = try rules(text)
        #expect(once.rules.map(\.description).joined(separator: "\n") == text)
        #expect(once.rules.map(\.line) == [1, 2, 3, 4, 5, 6])
    }

    @Test("random bytes yield rules or an error, never a trap", arguments: UInt64(1)...20)
    func randomBytes(seed: UInt64) {
        var random = SystemRandomNumberGenerator()
        let words = [
            "allow", "deny", "user", "client", "*", "everyone", "anonymous", "both", "publish", "#",
            "a/+", "%u", "\"", "\\", "\n", " ", "\t", "\r", "$", "/", "\u{0}", "\u{FEFF}",
        ]
        for _ in 0..<200 {
            var contents: [UInt8] = []
            for _ in 0..<Int.random(in: 0...12, using: &random) {
                contents += Array((words.randomElement(using: &random) ?? "").utf8)
                contents += Bool.random(using: &random) ? [0x20] : []
                if Int.random(in: 0..<20, using: &random) == 0 {
                    contents.append(UInt8.random(in: .min ... .max, using: &random))
                }
            }
            _ = try? AccessRules(parsing: contents, path: "acl")
        }
    }

    // MARK: Files

    @Test("a file that cannot be read is an error with its cure, never a rule set")
    func unreadable() throws {
        let missing = #expect(throws: AccessRulesError.self) {
            try AccessRules.load(path: "/nonexistent/acl")
        }
        #expect(missing?.description.contains("ENOENT") == true)
        #expect(missing?.description.contains("an empty one denies everything") == true)
        let folder = #expect(throws: AccessRulesError.self) { try AccessRules.load(path: "/") }
        #expect(folder?.description.contains("regular file") == true)
        #expect(throws: AccessRulesError.self) { try AccessRules.load(path: "/dev/null") }
    }

    @Test("one's own link is followed, one of another user is not")
    func links() throws {
        var template = Array("/tmp/hermes-acl-XXXXXX".utf8CString)
        let folder = String(cString: try #require(mkdtemp(&template)))
        let (file, link) = (folder + "/real", folder + "/acl")
        defer { _ = (unlink(file), unlink(link), rmdir(folder)) }
        let descriptor = open(file, O_CREAT | O_WRONLY, 0o600)
        #expect(descriptor >= 0 && close(descriptor) == 0)
        #expect(symlink("real", link) == 0)
        #expect(try AccessRules.load(path: link).rules.isEmpty)
        // Only root can change the owner of a link.
        guard geteuid() == 0 else { return }
        #expect(lchown(link, 65_534, 65_534) == 0)
        let refusal = #expect(throws: AccessRulesError.self) { try AccessRules.load(path: link) }
        #expect(refusal?.description.contains("belongs to user 65534") == true)
    }

    @Test("a file that others may change is warned of")
    func access() throws {
        #expect(try AccessRules(parsing: [], path: "f", mode: 0o644).accessWarning == nil)
        for mode: mode_t in [0o666, 0o660, 0o602] {
            let warning = try AccessRules(parsing: [], path: "f", mode: mode).accessWarning
            #expect(warning?.contains("chmod go-w 'f'") == true)
        }
    }
}
