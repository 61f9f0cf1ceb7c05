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
