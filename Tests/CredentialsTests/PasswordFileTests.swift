import Credentials
import Testing

@Suite("PasswordFile as text")
struct PasswordFileTests {
    private static let hash = """
        $argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4
        """

    private func parse(_ text: String) throws -> PasswordFile {
        try PasswordFile(parsing: Array(text.utf8), path: "users")
    }

    @Test("many users at once: in place or at the end, and the last of each counts")
    func setAll() throws {
        let hash = try PasswordHash(
            hashing: SecretBytes(copying: Array("a".utf8)),
            parameters: try #require(Argon2Parameters(memoryKiB: 8, iterations: 1, parallelism: 1)))
        let other = try PasswordHash(
            hashing: SecretBytes(copying: Array("b".utf8)),
            parameters: try #require(Argon2Parameters(memoryKiB: 8, iterations: 1, parallelism: 1)))
        func entry(_ name: String, _ hash: PasswordHash) throws -> PasswordFile.Entry {
            PasswordFile.Entry(userName: try UserName(name), hash: hash)
        }
        var file = PasswordFile()
        file.set(try UserName("one"), to: hash)
        file.set(try UserName("two"), to: hash)
        let existed = file.setAll([
            try entry("three", hash), try entry("two", hash), try entry("three", other),
            try entry("two", other), try entry("four", hash),
        ])
        #expect(existed == [false, true, true, true, false])
        #expect(file.entries.map(\.userName.text) == ["one", "two", "three", "four"])
        #expect(file.entries.map(\.hash) == [hash, other, other, hash])
    }

    @Test("keeps comments, blank lines and order when users are added, changed and removed")
    func editing() throws {
        let text = """
            # the phones

            anna:\(Self.hash)
              # indented comment
            berta:\(Self.hash)
            \t
            # end

            """
        var file = try parse(text)
        #expect(String(decoding: file.contents, as: UTF8.self) == text)
        #expect(file.entries.map(\.userName.text) == ["anna", "berta"])

        let other = try cheapHash("other")
        #expect(try file.set(UserName("anna"), to: other))
        #expect(try !file.set(UserName("clara"), to: other))
        #expect(try file.remove(UserName("berta")))
        #expect(try !file.remove(UserName("berta")))
        #expect(
            String(decoding: file.contents, as: UTF8.self) == """
                # the phones

                anna:\(other.encoded)
                  # indented comment
                \t
                # end
                clara:\(other.encoded)

                """)
    }

    @Test("a last line without line end is a line like any other")
    func noFinalLineEnd() throws {
        var file = try parse("anna:\(Self.hash)")
        try file.set(UserName("berta"), to: cheapHash("x"))
        #expect(file.entries.map(\.userName.text) == ["anna", "berta"])
        #expect(file.contents.filter { $0 == UInt8(ascii: "\n") }.count == 2)
    }

    @Test(
        "blanks behind a user are passed over: nobody can see them",
        arguments: [" ", "\t", " \t "])
    func trailingBlanks(blanks: String) throws {
        let file = try parse("anna:\(Self.hash)\(blanks)\n")
        #expect(file.entries.map(\.userName.text) == ["anna"])
        #expect(String(decoding: file.contents, as: UTF8.self) == "anna:\(Self.hash)\n")
    }

    @Test("files without a user line have no users", arguments: ["", "\n", "\n\n", "# a\n", " "])
    func empty(text: String) throws {
        #expect(try parse(text).entries.isEmpty)
    }

    @Test(
        "names the line of each malformed line and never makes it a user",
        arguments: [
            ("anna", PasswordFileProblem.Kind.entry(.noColon)),
            ("$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65", .entry(.noColon)),
            ("\0", .entry(.noColon)),
            (":\(hash)", .entry(.userName(.empty))),
            (":", .entry(.userName(.empty))),
            (" anna:\(hash)", .entry(.userName(.blankAtEnd))),
            ("anna :\(hash)", .entry(.userName(.blankAtEnd))),
            ("an/na:\(hash)", .entry(.userName(.reservedCharacter("/")))),
            ("an\u{1B}na:\(hash)", .entry(.userName(.invisibleCharacter(codePoint: 0x1B)))),
            ("anna:\(hash)\r", .carriageReturn),
            ("\r", .carriageReturn),
        ])
    func malformed(line: String, kind: PasswordFileProblem.Kind) throws {
        let expected = PasswordFileError.malformed(
            path: "users", [PasswordFileProblem(line: 3, kind: kind)])
        #expect(throws: expected) { try parse("# one\n\n\(line)\nzoe:\(Self.hash)\n") }
    }

    @Test(
        "says which user has a damaged hash",
        arguments: [
            ("", PasswordHashSyntaxError.notArgon2id),
            ("hunter2", .notArgon2id),
            (" \(hash)", .notArgon2id),
            ("\(hash):x", .hash),
        ])
    func damagedHash(text: String, error: PasswordHashSyntaxError) throws {
        let problem = PasswordFileProblem(line: 1, kind: .entry(.hash(try UserName("anna"), error)))
        #expect(throws: PasswordFileError.malformed(path: "users", [problem])) {
            try parse("anna:\(text)")
        }
    }

    @Test("names all problems at once, with cures, and repeats no secret")
    func description() throws {
        let text = "\u{FEFF}# c\nanna:hunter2\nanna:\(Self.hash)\nanna:\(Self.hash)\nloose\n"
        let error = try #require(throws: PasswordFileError.self) { try parse(text) }
        #expect(
            error.description == """
                users:1: the file begins with a byte order mark. Save it as UTF-8 without one.
                users:2: user "anna": what follows the name is not an Argon2id hash \
                ($argon2id$...). Delete the line and set the password with hermesctl users add.
                users:4: user "anna" is already on line 3. Delete one of the two lines.
                users:5: there is no ":" between a name and a hash. Write name:hash, begin a \
                comment with "#", or delete the line.
                """)
        #expect(!error.description.contains("hunter2"))
    }

    @Test("lists twenty problems and counts the rest")
    func manyProblems() throws {
        let error = try #require(throws: PasswordFileError.self) {
            try parse(String(repeating: "x\n", count: 25))
        }
        let lines = error.description.split(separator: "\n")
        #expect(lines.count == 21)
        #expect(lines.last == "users: 5 more lines are malformed.")
    }

    @Test("escapes a path and a name that would act on a terminal")
    func escaping() throws {
        let error = PasswordFileError.missing(path: "a\u{1B}[2Jb")
        #expect(error.description.contains("\"a\\u{1B}[2Jb\""))
    }
}

@Suite("PasswordVerifier")
struct PasswordVerifierTests {
    private func verifier(_ users: [(String, String)]) throws -> PasswordVerifier {
        var file = PasswordFile()
        for (name, password) in users { try file.set(UserName(name), to: cheapHash(password)) }
        return PasswordVerifier(file)
    }

    @Test("lets in the right password and nothing else")
    func verifies() throws {
        let verifier = try verifier([("anna", "one"), ("berta", "two")])
        #expect(verifier.userCount == 2)
        let cases = [
            ("anna", "one", true), ("berta", "two", true), ("anna", "two", false),
            ("anna", "", false), ("anna", "one\0", false), ("Anna", "one", false),
            ("", "", false), ("clara", "one", false), ("clara", "two", false),
            ("anna\0", "one", false), ("anna:", "one", false),
        ]
        for (name, password, expected) in cases {
            let answer = verifier.verify(
                userName: Array(name.utf8), password: Array(password.utf8))
            #expect(answer == expected, "\(name) \(password)")
        }
    }

    @Test("an unknown name is refused even with the password of the only user")
    func decoyNeverAdmits() throws {
        let verifier = try verifier([("anna", "one")])
        for number in 0..<50 {
            let name = Array("user\(number)".utf8)
            #expect(!verifier.verify(userName: name, password: Array("one".utf8)))
        }
    }

    @Test("without users everybody is refused")
    func noUsers() {
        let verifier = PasswordVerifier(PasswordFile())
        #expect(!verifier.verify(userName: Array("anna".utf8), password: []))
        #expect(!verifier.verify(userName: [], password: []))
    }

    @Test("an unknown name costs as much as a known one")
    func equalCost() throws {
        var file = PasswordFile()
        let parameters = try #require(
            Argon2Parameters(memoryKiB: 8_192, iterations: 2, parallelism: 1))
        let hash = try PasswordHash(
            hashing: SecretBytes(copying: Array("one".utf8)), parameters: parameters)
        try file.set(UserName("anna"), to: hash)
        let verifier = PasswordVerifier(file)

        func fastest(_ name: String) -> Duration {
            (0..<9).map { _ in
                ContinuousClock().measure {
                    _ = verifier.verify(userName: Array(name.utf8), password: Array("no".utf8))
                }
            }.min() ?? .zero
        }
        _ = fastest("anna")
        let known = fastest("anna")
        let unknown = fastest("nobody")
        // A short cut would take microseconds instead of milliseconds.
        #expect(unknown > known / 3, "known \(known), unknown \(unknown)")
    }

    @Test("many threads may ask at once")
    func concurrent() async throws {
        let verifier = try verifier([("anna", "one")])
        let admitted = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<64 {
                group.addTask {
                    let password = number.isMultiple(of: 2) ? "one" : "two"
                    return verifier.verify(
                        userName: Array("anna".utf8), password: Array(password.utf8))
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(admitted == 32)
    }
}
