import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("Tags of clients")
struct TagRouteTests {
    private static let json = ["Content-Type: application/json"]

    private func put(
        _ server: TestServer, _ json: String, to clientID: String = "a",
        token: String = TestServer.token
    ) throws -> RawResponse {
        try server.request(
            "PUT", "/v1/clients/\(clientID)/tags", headers: Self.json, token: token,
            body: Array(json.utf8))
    }

    @Test("tags are added and removed, each once, and shown")
    func change() async throws {
        try await TestServer.run { server in
            let first = try put(server, #"{"add": ["b", "ä/1", "b"]}"#, to: "phone%2F7")
            #expect(first.status == 200)
            #expect(try first.json(ClientTags.self).clientID == "phone/7")
            #expect(try first.json(ClientTags.self).tags == ["b", "ä/1"])
            let second = try put(server, #"{"add": ["c"], "remove": ["b"]}"#, to: "phone%2F7")
            let changed = ClientTags(clientID: "phone/7", tags: ["c", "ä/1"])
            #expect(try second.json(ClientTags.self) == changed)
            let shown = try server.request("GET", "/v1/clients/phone%2F7/tags")
            #expect(try shown.json(ClientTags.self) == changed)
            let unknown = try server.request("GET", "/v1/clients/other/tags")
            #expect(
                try unknown.json(ClientTags.self) == ClientTags(clientID: "other", tags: []))
        }
    }

    @Test(
        "a wrong change is refused by field",
        arguments: [
            ("{}", "add"), (#"{"add": [], "remove": null}"#, "add"), (#"{"add": "b"}"#, "add"),
            (#"{"add": [1]}"#, "add"), (#"{"add": [""]}"#, "add"),
            (#"{"remove": [" b"]}"#, "remove"),
            (#"{"add": ["b\u00a0"]}"#, "add"), (#"{"add": ["a,b"]}"#, "add"),
            (#"{"add": ["a\u0085b"]}"#, "add"), (#"{"add": ["a\u0000"]}"#, "add"),
            (#"{"add": ["\#(String(repeating: "x", count: 65))"]}"#, "add"),
            (#"{"add": ["\#(String(repeating: "ä", count: 33))"]}"#, "add"),
            (#"{"add": ["b"], "remove": ["c", "b"]}"#, "remove"), (#"{"tags": ["b"]}"#, "tags"),
        ])
    func wrongChange(json: String, field: String) async throws {
        try await TestServer.run { server in
            let problem = try put(server, json).problem()
            #expect(problem.type == "urn:hermes:problem:invalid-field")
            #expect(problem.field == field)
            #expect(try put(server, #"{"add": ["fine"]}"#).json(ClientTags.self).tags == ["fine"])
        }
    }

    @Test("a list holds 64 tags, of 64 bytes each")
    func most() async throws {
        try await TestServer.run { server in
            func list(_ count: Int) -> String {
                let tags = (0..<count).map { number in
                    let digits = "\(number)"
                    return "\"\(digits)\(String(repeating: "x", count: 64 - digits.count))\""
                }
                return "{\"add\": [\(tags.joined(separator: ","))]}"
            }
            #expect(try put(server, list(64)).json(ClientTags.self).tags.count == 64)
            let problem = try put(server, list(65)).problem()
            #expect(problem.field == "add")
            #expect(problem.detail.contains("65 tags"))
        }
    }

    @Test("a client identifier that no client can have is refused")
    func wrongClient() async throws {
        try await TestServer.run { server in
            for response in [
                try put(server, #"{"add": ["b"]}"#, to: "a%00"),
                try server.request("GET", "/v1/clients/a%00/tags"),
            ] {
                let problem = try response.problem()
                #expect(problem.type == "urn:hermes:problem:invalid-field")
                #expect(problem.field == "id")
            }
            let tag = try server.request("GET", "/v1/tags/a%2Cb/clients").problem()
            #expect(tag.field == "tag")
        }
        #expect(throws: Problem.self) {
            try ClientIDText(String(repeating: "x", count: 65_536), field: "id")
        }
        #expect(throws: Never.self) {
            try ClientIDText(String(repeating: "x", count: 65_535), field: "id")
        }
    }

    @Test("too many tags of a client and of all are different problems")
    func full() async throws {
        try await TestServer.run { server in
            let outcomes: [(TagChange, Int, String)] = [
                (.tooManyTags, 409, "too-many-tags"), (.full, 507, "tags-full"),
            ]
            for (outcome, status, kind) in outcomes {
                server.broker.change { $0.tagChange = outcome }
                let problem = try put(server, #"{"add": ["b"]}"#).problem()
                #expect(problem.status == status)
                #expect(problem.type == "urn:hermes:problem:\(kind)")
            }
        }
    }

    @Test("short and empty pages of the data plane make one page of the answer")
    func pages() async throws {
        let broker = StubBroker { state in
            state.tagPages = [
                0: TagPage(tags: [TagSummary(tag: "a", clients: 1)], next: "5"),
                5: TagPage(tags: [], next: "9"),
                9: TagPage(tags: [TagSummary(tag: "b", clients: 2)], next: "12"),
                12: TagPage(tags: [TagSummary(tag: "c", clients: 3)]),
            ]
            state.taggedClientPages = [
                0: TaggedClientPage(clients: ["x"], next: "3"),
                3: TaggedClientPage(clients: ["y"]),
            ]
        }
        try await TestServer.run(broker) { server in
            let first: TagPage = try server.request("GET", "/v1/tags?limit=2").json()
            #expect(first.tags.map(\.tag) == ["a", "b"])
            #expect(first.next == PlaceCursor(12 as UInt32).text)
            let next = try #require(first.next)
            let second: TagPage = try server.request("GET", "/v1/tags?limit=2&cursor=\(next)")
                .json()
            #expect(second.tags.map(\.tag) == ["c"])
            #expect(second.next == nil)
            let clients: TaggedClientPage = try server.request("GET", "/v1/tags/a/clients").json()
            #expect(clients == TaggedClientPage(clients: ["x", "y"]))
        }
    }

    @Test("a search through empty pages ends, and is continued by its cursor")
    func endless() async throws {
        let broker = StubBroker { state in
            for place in 0..<UInt32(100) {
                state.tagPages[place] = TagPage(tags: [], next: "\(place + 1)")
            }
        }
        try await TestServer.run(broker) { server in
            let page: TagPage = try server.request("GET", "/v1/tags").json()
            #expect(page == TagPage(tags: [], next: PlaceCursor(64 as UInt32).text))
        }
    }

    @Test("a token that is bound to topics has no part of tags")
    func bound() async throws {
        try await withBoundToken { server, token in
            for response in [
                try put(server, #"{"add": ["b"]}"#, token: token),
                try server.request("GET", "/v1/clients/a/tags", token: token),
                try server.request("GET", "/v1/tags", token: token),
                try server.request("GET", "/v1/tags/a/clients", token: token),
            ] {
                let problem = try response.problem()
                #expect(problem.status == 403)
                #expect(problem.type == "urn:hermes:problem:bound-token")
                #expect(problem.detail.contains("\"bound\""))
            }
        }
    }
}
