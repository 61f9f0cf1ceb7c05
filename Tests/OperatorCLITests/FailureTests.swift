import Testing

@testable import OperatorCLI

@Suite("Exit codes and error messages")
struct FailureTests {
    @Test("a problem document is shown in the broker's words, with its cure, on one line")
    func problem() async throws {
        let answer = try AdminResponse.problem(
            400, "The topic name is wrong", "It holds \\u{1B} and\na \u{1B}[31m wildcard.",
            fix: "Leave out + and #.")
        let run = try await run(["publish", "-t", "+", "-m", "x"], answers: [answer])
        #expect(run.exitCode == 1)
        #expect(
            run.errors == """
                hermesctl: The topic name is wrong: It holds \\u{1B} and\\na \\u{1B}[31m wildcard. \
                Leave out + and #.

                """)
    }

    @Test("a refused token has its own exit code", arguments: [401, 403])
    func unauthorized(status: Int) async throws {
        let answer = try AdminResponse.problem(status, "A valid token is required", "Wrong token.")
        let run = try await run(["status"], answers: [answer])
        #expect(run.exitCode == 4)
    }

    @Test(
        "an answer that no Hermes broker sends is reported as such",
        arguments: [
            AdminResponse(status: 502, mediaType: "text/html", body: Array("<h1>".utf8)),
            AdminResponse(status: 404, mediaType: "application/problem+json", body: []),
            AdminResponse(status: 200, mediaType: "text/html", body: Array("<h1>".utf8)),
            AdminResponse(status: 200, mediaType: "application/json", body: Array("{}".utf8)),
            AdminResponse(status: 302, mediaType: nil, body: []),
        ])
    func foreign(answer: AdminResponse) async throws {
        let run = try await run(["status"], answers: [answer])
        #expect(run.exitCode == 5)
        #expect(run.errors.hasPrefix("hermesctl: "))
        #expect(run.errors.contains("http://127.0.0.1:8080"))
        #expect(run.output.isEmpty)
    }

    @Test("an unreachable broker has its own exit code")
    func unreachable() async throws {
        #expect(try await run(["status"]).exitCode == 3)
    }

    @Test(
        "wrong arguments end with 64 and send nothing",
        arguments: [
            ["nonsense"], ["status", "extra"], ["status", "--url", "x"],
            ["status", "--url", "http://a", "--socket", "/s"], ["status", "--timeout", "0"],
            ["status", "--socket", ""], ["clients", "show"], ["clients", "show", ""],
            ["clients", "kick", ""], ["clients", "list", "--limit", "0"],
            ["clients", "list", "--connected", "--offline"], ["publish", "-m", "x"],
            ["publish", "-t", "", "-m", "x"], ["publish", "-t", "a", "-m", "x", "-q", "3"],
            ["publish", "-t", "a", "-m", "x", "-f", "y"], ["users", "add"],
            ["users", "add", "a/b", "--password-file", "f"],
            ["users", "add", "a", "--password", "x"], ["users", "list"], ["config", "check"],
        ])
    func usage(arguments: [String]) async throws {
        let run = try await run(arguments)
        #expect(run.exitCode == 64)
        #expect(!run.errors.isEmpty)
        #expect(run.output.isEmpty)
        #expect(run.requests.isEmpty)
    }

    @Test(
        "help, version and completion scripts are output, with 0",
        arguments: [
            ["--help"], ["--version"], [], ["clients"], ["users", "add", "--help"],
            ["--generate-completion-script", "bash"], ["--generate-completion-script", "zsh"],
            ["--generate-completion-script", "fish"],
        ])
    func help(arguments: [String]) async throws {
        let run = try await run(arguments)
        #expect(run.exitCode == 0)
        #expect(!run.output.isEmpty)
        #expect(run.errors.isEmpty)
    }

    @Test("a closed output ends the command quietly")
    func outputClosed() async throws {
        let captured = Captured()
        let console = Console(
            outputColumns: nil,
            writeOutput: { _ throws(CommandFailure) in throw CommandFailure(.outputClosed, "") },
            writeError: { text in captured.console(columns: nil).show(text) })
        let context = CommandContext(
            environment: [:], console: console, now: { now },
            makeTransport: { _, _, _ in StubTransport(answers: []) })
        #expect(await Hermesctl.run(["--help"], in: context) == 141)
        #expect(captured.errors.isEmpty)
    }
}

@Suite("The sources of the broker's address and token")
struct ConnectionOptionsTests {
    private func refusal() throws -> AdminResponse {
        try .problem(404, "There is no such client", "x")
    }

    @Test("a token is taken from --token-file, then the environment, then the data directory")
    func tokenSources() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("from-file\n", to: "admin.token")
        let environment = ["HERMES_ADMIN_TOKEN": "from-environment"]

        let explicit = try await run(
            ["status", "--token-file", path], answers: [refusal()], environment: environment)
        #expect(explicit.requests.map(\.token) == ["from-file"])
        let variable = try await run(
            ["status", "--data-directory", folder.path], answers: [refusal()],
            environment: environment)
        #expect(variable.requests.map(\.token) == ["from-environment"])
        let option = try await run(
            ["status", "--data-directory", folder.path], answers: [refusal()], environment: [:])
        #expect(option.requests.map(\.token) == ["from-file"])
        let inherited = try await run(
            ["status"], answers: [refusal()], environment: ["HERMES_DATA_DIRECTORY": folder.path])
        #expect(inherited.requests.map(\.token) == ["from-file"])
    }

    @Test("a configuration gives address and data directory; other flags go before it")
    func configuration() async throws {
        let folder = try TemporaryFolder()
        try folder.write("from-file", to: "admin.token")
        let config = try folder.write(
            "data_directory: \(folder.path)\nadmin:\n  port: 9001\n", to: "hermes.yaml")
        let asked = try await run(
            ["status", "--config", config], answers: [refusal()], environment: [:])
        #expect(asked.requests.map(\.url) == ["http://127.0.0.1:9001/v1/status"])
        #expect(asked.requests.map(\.token) == ["from-file"])
        let overridden = try await run(
            ["status", "--config", config, "--url", "http://127.0.0.1:9"], answers: [refusal()],
            environment: [:])
        #expect(overridden.requests.map(\.url) == ["http://127.0.0.1:9/v1/status"])
    }

    @Test("a wrong configuration is shown with all its problems, and ends with 2")
    func wrongConfiguration() async throws {
        let folder = try TemporaryFolder()
        let config = try folder.write(
            "admin:\n  port: many\nlimits:\n  max_in_flight: 0\n", to: "hermes.yaml")
        let run = try await run(["status", "--config", config])
        #expect(run.exitCode == 2)
        let lines = run.errors.split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.allSatisfy { $0.hasPrefix("hermesctl: \(config):") })
    }

    @Test("over a Unix socket no token is needed or sent")
    func socket() async throws {
        let run = try await run(
            ["status", "--socket", "/run/hermes.sock"], answers: [refusal()],
            environment: ["HERMES_ADMIN_TOKEN": "secret"])
        #expect(run.requests.map(\.token) == [nil])
        #expect(run.requests.map(\.url) == ["http+unix://%2Frun%2Fhermes.sock/v1/status"])
    }

    @Test("a missing token file is named with every way to give a token")
    func missingToken() async throws {
        let run = try await run(["status", "--data-directory", "/nonexistent"], environment: [:])
        #expect(run.exitCode == 4)
        #expect(
            run.errors == """
                hermesctl: cannot read the token file "/nonexistent/admin.token": no such file or \
                directory (ENOENT). Name the broker's data directory with --data-directory or \
                --config, the file with --token-file, or set HERMES_ADMIN_TOKEN. A broker writes \
                admin.token into its data directory when it starts for the first time without that \
                variable.

                """)
        #expect(run.requests.isEmpty)
    }

    @Test(
        "a token that could smuggle a header is refused and not repeated",
        arguments: ["a\r\nX: y", "a b", "ü", "\n", "a\u{0}"])
    func badToken(token: String) async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(token, to: "admin.token")
        let run = try await run(["status", "--token-file", path])
        #expect(run.exitCode == 4)
        #expect(run.errors.contains("holds no token"))
        #expect(run.requests.isEmpty)
    }

    @Test("a token that leaves the machine unencrypted is warned about")
    func plainText() async throws {
        let plain = try await run(
            ["status", "--url", "http://broker.example"], answers: [refusal()])
        #expect(plain.errors.contains("warning: the token goes to http://broker.example"))
        let encrypted = try await run(
            ["status", "--url", "https://broker.example"], answers: [refusal()])
        #expect(!encrypted.errors.contains("warning"))
    }
}
