import BrokerAPI
import Testing

@testable import OperatorCLI

@Suite("hermesctl tags")
struct TagsCommandTests {
    private static let tags = ClientTags(clientID: "phone/7", tags: ["a\u{1B}", "b"])

    @Test(
        "tags are changed by PUT, and the tags of then are shown",
        arguments: [
            (["add", "phone/7", "a", "b"], #"{"add":["a","b"],"remove":[]}"#),
            (["remove", "phone/7", "--", "-c"], #"{"add":[],"remove":["-c"]}"#),
        ])
    func change(arguments: [String], body: String) async throws {
        let run = try await run(["tags"] + arguments, answers: [.ok(Self.tags)])
        #expect(run.output == "client  phone/7\ntags    a\\u{1B}, b\n")
        #expect(run.exitCode == 0)
        let request = try #require(run.requests.first)
        #expect(request.method == .put)
        #expect(request.url == "http://127.0.0.1:8080/v1/clients/phone%2F7/tags")
        #expect(request.contentType == "application/json")
        #expect(request.body == Array((body + "\n").utf8))
    }

    @Test("a client without tags is shown as such")
    func show() async throws {
        let answer = ClientTags(clientID: "a", tags: [])
        let run = try await run(["tags", "show", "a"], answers: [.ok(answer)])
        #expect(run.output == "client  a\ntags    none\n")
        #expect(run.requests.map(\.method) == [.get])
    }

    @Test("tags are listed by name, from as many pages as there are")
    func list() async throws {
        let pages = [
            TagPage(tags: [TagSummary(tag: "b", clients: 12)], next: "7"), TagPage(next: "9"),
            TagPage(tags: [TagSummary(tag: "a", clients: 3)]),
        ]
        let run = try await run(["tags", "list"], answers: pages.map { try .ok($0) })
        #expect(
            run.output == """
                CLIENTS  TAG
                      3  a
                     12  b

                """)
        #expect(
            run.requests.map(\.url) == [
                "http://127.0.0.1:8080/v1/tags?limit=1000",
                "http://127.0.0.1:8080/v1/tags?limit=999&cursor=7",
                "http://127.0.0.1:8080/v1/tags?limit=999&cursor=9",
            ])
        #expect(run.errors.isEmpty)
    }

    @Test("the clients of a tag; what is beyond the limit is told")
    func clients() async throws {
        let page = TaggedClientPage(clients: ["b", "a"], next: "5")
        let run = try await run(["tags", "clients", "a b", "--limit", "2"], answers: [.ok(page)])
        #expect(run.output == "CLIENT\na\nb\n")
        #expect(run.errors == "hermesctl: there are more than these 2. Raise --limit.\n")
        #expect(
            run.requests.map(\.url) == ["http://127.0.0.1:8080/v1/tags/a%20b/clients?limit=2"])
    }

    @Test("pages that lead to themselves end with an error")
    func endless() async throws {
        let page = TagPage(next: "7")
        let run = try await run(["tags", "list"], answers: [.ok(page), .ok(page)])
        #expect(run.exitCode == 5)
    }

    @Test(
        "wrong arguments are refused before a request",
        arguments: [
            ["add", "a"], ["remove", "a"], ["clients"], ["clients", ""],
            ["show", ""], ["list", "--limit", "0"],
        ])
    func wrong(arguments: [String]) async throws {
        let run = try await run(["tags"] + arguments)
        #expect(run.exitCode == 64)
        #expect(run.requests.isEmpty)
    }
}
