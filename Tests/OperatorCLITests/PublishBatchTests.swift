import Testing

@testable import OperatorCLI

@Suite("hermesctl publish --batch")
struct PublishBatchTests {
    private static let published = #"{"line":1,"dropped":0,"matched":1,"message_id":"\"error\":"}"#

    private static func failed(_ line: Int) -> String {
        #"{"line":\#(line),"error":{"detail":"It is \u001b[31m.","fix":"Change it.","#
            + #""status":400,"title":"Wrong","type":"urn:hermes:problem:invalid-field"}}"#
    }

    private static func answer(_ lines: [String]) -> AdminResponse {
        AdminResponse(
            status: 200, mediaType: "application/x-ndjson",
            body: Array(lines.map { $0 + "\n" }.joined().utf8))
    }

    @Test("sends standard input as it is, counts the results, and shows the first errors")
    func summary() async throws {
        let run = try await run(
            ["publish", "--batch", "-"],
            answers: [Self.answer([Self.published, Self.failed(2), Self.published])],
            input: "{}\nx\n{}\n")
        #expect(run.requests.map(\.url) == ["http://127.0.0.1:8080/v1/messages/batch"])
        #expect(run.requests.first?.body == Array("{}\nx\n{}\n".utf8))
        #expect(run.exitCode == 1)
        #expect(
            run.output == """
                lines      3
                published  2
                failed     1
                line 2: It is \\u{1B}[31m. Change it.

                """)
        #expect(run.errors == "hermesctl: 1 of 3 lines were not published.\n")
    }

    @Test("when every line is published the exit code is 0")
    func allWell() async throws {
        let run = try await run(
            ["publish", "--batch", "-"], answers: [Self.answer([Self.published])], input: "{}\n")
        #expect(run.exitCode == 0)
        #expect(run.errors.isEmpty)
    }

    @Test("--json prints the results as they are")
    func json() async throws {
        let lines = [Self.published, Self.failed(2)]
        let run = try await run(
            ["publish", "--batch", "-", "--json"], answers: [Self.answer(lines)], input: "{}\n")
        #expect(run.output == lines.map { $0 + "\n" }.joined())
        #expect(run.exitCode == 1)
    }

    @Test("of many errors ten are shown")
    func manyErrors() async throws {
        let run = try await run(
            ["publish", "--batch", "-"],
            answers: [Self.answer((1...12).map { Self.failed($0) })], input: "x\n")
        #expect(run.output.hasSuffix("line 10: It is \\u{1B}[31m. Change it.\nand 2 more\n"))
    }

    @Test("results count in whatever pieces they come")
    func pieces() {
        var results = BatchResults(shownErrors: 1, verb: "published")
        for byte in (Self.failed(1) + "\n" + Self.published + "\n").utf8 { results.take([byte]) }
        #expect(results.lines == 2 && results.failed == 1)
    }

    @Test("a refused batch is reported in the broker's words; a missing file by name")
    func refused() async throws {
        let problem = try AdminResponse.problem(403, "The token does not allow this", "No scope.")
        let run = try await run(["publish", "--batch", "-"], answers: [problem])
        #expect(run.exitCode == 4)
        #expect(run.output.isEmpty)
        let missing = try await OperatorCLITests.run(["publish", "--batch", "/nonexistent"])
        #expect(missing.exitCode == 2)
        #expect(missing.errors.contains("/nonexistent"))
    }

    @Test(
        "options of a single message do not go with it",
        arguments: [
            ["-t", "a"], ["-q", "1"], ["-r"], ["--message-id", "m"], ["--key", "k"],
            ["--expires", "1h"],
        ])
    func contradictions(options: [String]) async throws {
        let run = try await run(["publish", "--batch", "-"] + options)
        #expect(run.exitCode == 64)
        #expect(run.requests.isEmpty)
    }
}
