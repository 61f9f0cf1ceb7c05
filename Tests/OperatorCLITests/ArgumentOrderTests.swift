import Testing

@testable import OperatorCLI

@Suite("Options before the command")
struct ArgumentOrderTests {
    @Test(
        "options of broker, token and output move behind the command",
        arguments: [
            (["--url", "U", "status"], ["status", "--url", "U"]),
            (["--json", "--url=U", "clients", "list"], ["clients", "list", "--json", "--url=U"]),
            (
                ["--token-file", "T", "clients", "show", "--", "-x"],
                ["clients", "show", "--token-file", "T", "--", "-x"]
            ),
            (["status", "--url", "U"], ["status", "--url", "U"]),
            (["--help"], ["--help"]), (["--version"], ["--version"]), ([], []),
            (["--url"], ["--url"]), (["--url", "U"], ["--url", "U"]),
            (["--urls", "U", "status"], ["--urls", "U", "status"]),
            (["--", "--json"], ["--", "--json"]),
        ] as [([String], [String])])
    func moved(given: [String], expected: [String]) {
        #expect(ArgumentOrder.commandFirst(given) == expected)
    }

    @Test("the address in the data directory counts together with the token there")
    func address() async throws {
        let folder = try TemporaryFolder()
        try folder.write("from-file\n", to: "admin.token")
        try folder.write("http://127.0.0.1:9\nmore\n", to: "admin.address")
        let here = ["status", "--data-directory", folder.path]
        let found = try await run(here, environment: [:])
        #expect(found.requests.map(\.url) == ["http://127.0.0.1:9/v1/status"])
        #expect(found.requests.map(\.token) == ["from-file"])
        let other = try await run(here, environment: ["HERMES_ADMIN_TOKEN": "secret"])
        #expect(other.requests.map(\.url) == ["http://127.0.0.1:8080/v1/status"])
        for text in ["", "ftp://x\n", String(repeating: "http://a", count: 200)] {
            try folder.write(text, to: "admin.address")
            let run = try await run(here, environment: [:])
            #expect(run.requests.map(\.url) == ["http://127.0.0.1:8080/v1/status"])
        }
    }

    @Test("cures of the HTTP API are told in commands")
    func words() {
        #expect(
            CommandWords.translated("GET /v1/clients lists those there are.")
                == "hermesctl clients list lists those there are.")
        #expect(
            CommandWords.translated("Revoke that one: DELETE /v1/tokens/shop.")
                == "Revoke that one: hermesctl tokens revoke shop.")
    }
}
