import PlainText
import Testing

@testable import Credentials

/// The digest of a token, as in the file.
private func digest(_ token: String) -> String {
    "sha256:" + SHA256Digest(of: token.utf8).hexadecimal
}

/// An entry named like its token.
func tokenEntry(
    _ name: String, _ scopes: String = "publish", expires: String? = nil
) throws -> TokenFile.Entry {
    TokenFile.Entry(
        name: try TokenName(name), scopes: try #require(TokenScopes(parsing: scopes)),
        created: try #require(UTCTime("2025-01-31T08:00:00Z")),
        expires: try expires.map { try #require(UTCTime($0)) },
        digest: SHA256Digest(of: name.utf8))
}

@Suite("TokenFile")
struct TokenFileTests {
    @Test("tokens, comments and blank lines survive a round trip byte for byte")
    func roundTrip() throws {
        let text = """
            # back office

            billing publish 2025-01-31T08:00:00Z never \(digest("a"))
              # monitoring
            grafana read 2025-01-31T08:00:01Z 2026-01-31T08:00:01Z \(digest("b"))
            both publish,read 2025-01-31T08:00:02Z never \(digest("c"))
            bound publish 2025-01-31T08:00:02Z never \(digest("d")) topic:a/# topic:+/b rate:500/s

            """
        let file = try TokenFile(parsing: Array(text.utf8), path: "tokens")
        #expect(String(decoding: file.contents, as: UTF8.self) == text)
        #expect(file.entries.map(\.name.text) == ["billing", "grafana", "both", "bound"])
        #expect(
            file.entries.map { "\($0.scopes)" } == ["publish", "read", "publish,read", "publish"])
        #expect(file.entries[2].bounds == .none)
        #expect(file.entries[3].bounds.topics.map(\.text) == ["a/#", "+/b"])
        #expect(file.entries[3].bounds.rate?.description == "500/s")
        #expect(file.entries[0].expires == nil)
        #expect(file.entries[1].expires?.description == "2026-01-31T08:00:01Z")
    }

    @Test("an empty file has no tokens")
    func empty() throws {
        #expect(try TokenFile(parsing: [], path: "tokens").entries.isEmpty)
    }

    /// No malformed or blank line becomes a token.
    @Test(
        "any other line is an error with its number",
        arguments: [
            ("billing", "1 words"),
            ("billing publish 2025-01-31T08:00:00Z never", "4 words"),
            ("billing publish 2025-01-31T08:00:00Z never D x", "topic:"),
            ("billing publish 2025-01-31T08:00:00Z never D topic:", "topic:"),
            ("billing publish 2025-01-31T08:00:00Z never D topic:a/#/b", "topic:"),
            ("billing publish 2025-01-31T08:00:00Z never D rate:0/s", "rate:"),
            ("billing publish 2025-01-31T08:00:00Z never D rate:1/s rate:2/s", "rate:"),
            ("bil:ling publish 2025-01-31T08:00:00Z never D", "letters, digits"),
            ("b\u{1B}[31m publish 2025-01-31T08:00:00Z never D", "letters, digits"),
            ("\u{FEFF}billing publish 2025-01-31T08:00:00Z never D", "letters, digits"),
            ("admin publish 2025-01-31T08:00:00Z never D", "admin.token"),
            ("billing root 2025-01-31T08:00:00Z never D", "scopes"),
            ("billing publish,publish 2025-01-31T08:00:00Z never D", "scopes"),
            ("billing publish, 2025-01-31T08:00:00Z never D", "scopes"),
            ("billing , 2025-01-31T08:00:00Z never D", "scopes"),
            ("billing publish never never D", "time"),
            ("billing publish 2025-02-30T08:00:00Z never D", "time"),
            ("billing publish 2025-01-31T08:00:00Z 2025-01-31 D", "time"),
            ("billing publish 2025-01-31T08:00:00Z - D", "time"),
            (
                "billing publish 2025-01-31T08:00:00Z never \(String(repeating: "0", count: 64))",
                "digest"
            ),
            ("billing publish 2025-01-31T08:00:00Z never sha256:00", "digest"),
            ("billing publish 2025-01-31T08:00:00Z never D\r", "carriage return"),
        ])
    func malformed(line: String, complaint: String) throws {
        let text = "# first\n" + line.replacing("D", with: digest("x")) + "\n"
        let error = #expect(throws: TokenFileError.self) {
            try TokenFile(parsing: Array(text.utf8), path: "etc/to\nkens")
        }
        let description = try #require(error?.description)
        #expect(description.hasPrefix("etc/to\\nkens:2: "), "\(description)")
        #expect(description.contains(complaint), "\(description)")
        #expect(!description.contains("\u{1B}"))
    }

    @Test("bytes that are no UTF-8 are an error")
    func notUTF8() {
        #expect(throws: TokenFileError.self) {
            try TokenFile(parsing: [0x61, 0xFF, 0x20, 0x62], path: "tokens")
        }
    }

    @Test("a name and a token may stand there once")
    func duplicates() throws {
        let line = "publish 2025-01-31T08:00:00Z never"
        let names = "a \(line) \(digest("1"))\na \(line) \(digest("2"))\n"
        let tokens = "a \(line) \(digest("1"))\nb \(line) \(digest("1"))\n"
        for (text, complaint) in [(names, "\"a\" is already on line 1"), (tokens, "same token")] {
            let error = #expect(throws: TokenFileError.self) {
                try TokenFile(parsing: Array(text.utf8), path: "tokens")
            }
            #expect(error?.description.contains("tokens:2: ") == true)
            #expect(error?.description.contains(complaint) == true)
        }
    }

    @Test("the number of tokens is bounded, by adding and by reading")
    func bound() throws {
        var file = TokenFile()
        for number in 0..<TokenFile.maximumCount {
            let addition = file.add(try tokenEntry("t\(number)"))
            #expect(addition == .added)
        }
        let (repeated, more) = (file.add(try tokenEntry("t7")), file.add(try tokenEntry("more")))
        #expect(repeated == .nameTaken)
        #expect(more == .full)
        let again = try TokenFile(parsing: file.contents, path: "tokens")
        #expect(again.entries.count == TokenFile.maximumCount)
        let extra = try TokenFile(
            parsing: Array("more publish 2025-01-31T08:00:00Z never \(digest("m"))".utf8), path: "")
        let error = #expect(throws: TokenFileError.self) {
            try TokenFile(parsing: file.contents + extra.contents, path: "tokens")
        }
        #expect(error?.description.contains("tokens:1001: there are more than 1000") == true)
    }

    @Test("removing takes the one token and nothing else")
    func remove() throws {
        var file = TokenFile()
        for name in ["a", "b", "c"] { _ = file.add(try tokenEntry(name)) }
        let removed = try ["b", "b", "d"].map { file.remove(try TokenName($0)) }
        #expect(removed == [true, false, false])
        #expect(file.entries.map(\.name.text) == ["a", "c"])
    }

    @Test("a token expires at its second, and one without an end never")
    func expiry() throws {
        let entry = try tokenEntry("a", expires: "2025-01-31T09:00:00Z")
        #expect(!entry.isExpired(at: try #require(UTCTime("2025-01-31T08:59:59Z"))))
        #expect(entry.isExpired(at: try #require(UTCTime("2025-01-31T09:00:00Z"))))
        #expect(!(try tokenEntry("b")).isExpired(at: UTCTime(clamping: .max)))
    }

    @Test("the book knows the tokens of the file and no others")
    func book() throws {
        var file = TokenFile()
        for name in ["a", "b"] { _ = file.add(try tokenEntry(name)) }
        let book = TokenBook(file)
        #expect(book.count == 2)
        #expect(book.entry(of: "a".utf8)?.name.text == "a")
        #expect(book.entry(of: "b".utf8)?.name.text == "b")
        for wrong in ["", "A", "ab", "a ", digest("a"), "a\0"] {
            #expect(book.entry(of: wrong.utf8) == nil, "\(wrong)")
        }
    }
}

@Suite("Parts of a token")
struct TokenPartTests {
    @Test("names are letters, digits and three signs", arguments: ["a", "A-1_b.c", "9"])
    func names(text: String) throws {
        #expect(try TokenName(text).text == text)
    }

    @Test(
        "other names are refused",
        arguments: [
            ("", TokenNameError.empty), (String(repeating: "a", count: 65), .tooLong),
            ("a b", .forbiddenCharacter), ("a\n", .forbiddenCharacter), ("é", .forbiddenCharacter),
            ("a:b", .forbiddenCharacter), ("(unix socket)", .forbiddenCharacter),
            ("admin", .reserved),
        ])
    func wrongNames(text: String, error: TokenNameError) {
        #expect(throws: error) { try TokenName(text) }
    }

    @Test("admin includes the others; publish and read include nothing")
    func scopes() throws {
        let table: [(String, [TokenScope])] = [
            ("publish", [.publish]), ("read", [.read]), ("read,publish", [.publish, .read]),
            ("admin", [.publish, .read, .admin]), ("admin,read", [.publish, .read, .admin]),
        ]
        for (text, granted) in table {
            let scopes = try #require(TokenScopes(parsing: text))
            #expect(TokenScope.allCases.filter(scopes.grant) == granted, "\(text)")
        }
        #expect(TokenScopes([]) == nil)
        for text in ["", "Publish", "publish read", "all"] {
            #expect(TokenScopes(parsing: text) == nil)
        }
    }

    @Test("secrets are 43 characters that need no escape anywhere, and never the same")
    func secrets() {
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        var seen: Set<String> = []
        for _ in 0..<100 {
            let secret = TokenSecret.make()
            #expect(secret.count == 43)
            #expect(secret.allSatisfy(allowed.contains))
            seen.insert(secret)
        }
        #expect(seen.count == 100)
    }
}
