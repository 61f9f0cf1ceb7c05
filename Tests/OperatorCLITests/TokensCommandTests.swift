import Credentials
import Glibc
import Testing

@testable import OperatorCLI

@Suite("tokens commands")
struct TokensCommandTests {
    private func names(_ path: String) throws -> [String] {
        try TokenFile.load(path: path).entries.map(\.name.text)
    }

    @Test("create, list and revoke work on the file that is named")
    func lifecycle() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("tokens")
        let file = ["--tokens-file", path]

        let made = try await run(
            [
                "tokens", "create", "billing", "--scope", "publish", "--expires", "90d",
                "--topics", "orders/#", "--topics", "a/b", "--rate", "500/s",
            ] + file)
        #expect(made.exitCode == 0)
        let token = made.output.dropLast()
        #expect(made.output.hasSuffix("\n") && token.hasPrefix("hermes_") && token.count == 50)
        #expect(made.errors.contains("with the scopes publish, until 2025-05-01T08:00:00Z"))
        #expect(!made.errors.contains(token))
        let book = TokenBook(try TokenFile.load(path: path))
        #expect(book.entry(of: token.utf8)?.name.text == "billing")
        #expect(try !folder.read("tokens").contains(token.dropFirst(7)))

        let both = try await run(
            ["tokens", "create", "ops", "--scope", "read", "--scope", "publish"] + file)
        #expect(both.errors.contains("with the scopes publish,read, until it is revoked"))
        #expect(both.output != made.output)

        let listed = try await run(["tokens", "list"] + file)
        #expect(
            listed.output == """
                TOKEN    SCOPES        TOPICS        RATE   CREATED               EXPIRES
                billing  publish       orders/# a/b  500/s  2025-01-31T08:00:00Z  2025-05-01T08:00:00Z
                ops      publish,read  all           -      2025-01-31T08:00:00Z  never

                """)
        let json = try await run(["tokens", "list", "--json"] + file)
        #expect(
            json.output == """
                {"tokens":[{"created":"2025-01-31T08:00:00Z","expired":false,\
                "expires":"2025-05-01T08:00:00Z","name":"billing","rate":"500/s",\
                "scopes":["publish"],"topics":["orders/#","a/b"]},\
                {"created":"2025-01-31T08:00:00Z","expired":false,"name":"ops",\
                "scopes":["publish","read"],"topics":[]}]}

                """)

        let revoked = try await run(["tokens", "revoke", "billing"] + file)
        #expect(revoked.exitCode == 0)
        #expect(revoked.output == "Revoked \"billing\" in \(path).\n")
        #expect(try names(path) == ["ops"])
        let again = try await run(["tokens", "revoke", "billing"] + file)
        #expect(again.exitCode == 1)
        #expect(again.errors.contains("there is no token \"billing\" in \(path)."))
    }

    @Test("a name that is taken is refused, and no token is shown")
    func taken() async throws {
        let folder = try TemporaryFolder()
        let command = [
            "tokens", "create", "a", "--scope", "admin", "--tokens-file", folder.file("tokens"),
        ]
        #expect(try await run(command).exitCode == 0)
        let second = try await run(command)
        #expect(second.exitCode == 1)
        #expect(second.output.isEmpty)
        #expect(second.errors.contains("hermesctl tokens revoke a"))
    }

    @Test("the file is that of the data directory, the configuration or the environment")
    func places() async throws {
        let folder = try TemporaryFolder()
        let create = ["tokens", "create", "a", "--scope", "read"]
        _ = try await run(create + ["--data-directory", folder.path])
        #expect(try names(folder.file("tokens")) == ["a"])
        unlink(folder.file("tokens"))

        let config = try folder.write("data_directory: \(folder.path)\n", to: "hermes.yaml")
        _ = try await run(create + ["--config", config])
        #expect(try names(folder.file("tokens")) == ["a"])
        unlink(folder.file("tokens"))

        try folder.write("admin: {tokens_file: \(folder.file("tokens"))}\n", to: "hermes.yaml")
        _ = try await run(create + ["--config", config])
        #expect(try names(folder.file("tokens")) == ["a"])
        unlink(folder.file("tokens"))

        _ = try await run(
            create, environment: ["HERMES_ADMIN_TOKENS_FILE": folder.file("tokens")])
        #expect(try names(folder.file("tokens")) == ["a"])
    }

    @Test(
        "arguments that cannot be are usage errors, and no file is made",
        arguments: [
            ["a"], ["a", "--scope", "root"], ["a b", "--scope", "read"],
            ["admin", "--scope", "read"], ["a\u{1B}[1m", "--scope", "read"],
            ["a", "--scope", "read", "--expires", "90"],
            ["a", "--scope", "read", "--expires", "1s"],
            ["a", "--scope", "read", "--expires", "0d"],
            ["a", "--scope", "read", "--expires", "-1d"],
            ["a", "--scope", "read", "--expires", "99999999999999999999d"],
            ["a", "--scope", "read", "--expires", "9000000000000000000d"],
            ["a", "--scope", "read", "--data-directory", "x"],
            ["a", "--scope", "publish", "--topics", "a/#/b"],
            ["a", "--scope", "publish", "--topics", "a b"],
            ["a", "--scope", "publish", "--rate", "500"],
            ["a", "--scope", "publish", "--rate", "0/s"],
            ["a", "--scope", "read", "--rate", "5/s"],
            ["a", "--scope", "admin", "--topics", "a"],
        ])
    func usage(arguments: [String]) async throws {
        let folder = try TemporaryFolder()
        let run = try await run(
            ["tokens", "create"] + arguments + ["--tokens-file", folder.file("tokens")])
        #expect(run.exitCode == 64)
        #expect(run.output.isEmpty)
        #expect(!run.errors.contains("\u{1B}"))
        #expect(access(folder.file("tokens"), F_OK) != 0)
    }

    @Test(
        "a bad --expires is answered with valid examples",
        arguments: ["90", "1s", "0d", "1w", "-1d", "36501d", "1.5h", "9\u{1B}d"])
    func expires(text: String) async throws {
        let run = try await run(["tokens", "create", "a", "--scope", "read", "--expires=\(text)"])
        #expect(run.exitCode == 64)
        #expect(run.errors.contains("m (minutes), h (hours) or d (days), from 1m to 36500d"))
        #expect(!run.errors.contains("\u{1B}"))
    }

    @Test("a malformed file is shown with its line and stays as it is")
    func malformed() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("# tokens\nbilling\n", to: "tokens")
        for command in [
            ["list"], ["revoke", "a"], ["create", "a", "--scope", "read"],
        ] {
            let run = try await run(["tokens"] + command + ["--tokens-file", path])
            #expect(run.exitCode == 2)
            #expect(run.errors.hasPrefix("hermesctl: \(path):2: 1 words stand where"))
        }
        #expect(try folder.read("tokens") == "# tokens\nbilling\n")
    }

    @Test("an expired token is listed as such")
    func expired() async throws {
        let folder = try TemporaryFolder()
        let digest = SHA256Digest(of: "x".utf8).hexadecimal
        let path = try folder.write(
            "old read 2024-01-31T08:00:00Z 2025-01-31T08:00:00Z sha256:\(digest)\n", to: "tokens")
        let listed = try await run(["tokens", "list", "--tokens-file", path])
        #expect(listed.output.hasSuffix("2025-01-31T08:00:00Z (expired)\n"))
        let none = try await run(["tokens", "list", "--tokens-file", folder.file("none")])
        #expect(none.exitCode == 0)
        #expect(none.output == "TOKEN  SCOPES  TOPICS  RATE  CREATED  EXPIRES\n")
    }

    @Test("config check reads the token file that is named")
    func configCheck() async throws {
        let folder = try TemporaryFolder()
        let tokens = try folder.write("nonsense\n", to: "tokens")
        let config = try folder.write("admin: {tokens_file: \(tokens)}\n", to: "hermes.yaml")
        let checked = try await run(["config", "check", config])
        #expect(checked.exitCode == 2)
        #expect(checked.errors.contains("\(tokens):1: "))
    }
}
