import BrokerAPI
import Credentials
import Glibc
import Synchronization
import Testing

@testable import AdminAPI

@Suite("Users and access rules")
struct UserRouteTests {
    private static let json = ["Content-Type: application/json"]
    private static let hash =
        "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHRzYWx0$Zm9ydHl0d29mb3J0eXR3b2ZvcnR5dHdvZm9ydHk"

    private final class Count: Sendable {
        let value = Mutex(0)
        func add() { value.withLock { $0 += 1 } }
        var number: Int { value.withLock { $0 } }
    }

    /// Runs a server with files of its own; `reads` counts how often they were put into force.
    private func run(
        _ body: (TestServer, _ users: String, _ rules: String, _ reads: Count) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { folder in
            let (users, rules) = ("\(folder)/users", "\(folder)/acl")
            let reads = Count()
            let changes = TestServer.Changes {
                $0.users = UserFile(path: users) { reads.add() }
                $0.accessRules = AccessRulesFile(path: rules) {
                    reads.add()
                    return 7
                }
            }
            try await TestServer.run(with: changes) { try await body($0, users, rules, reads) }
        }
    }

    private func put(
        _ server: TestServer, _ target: String, _ json: String
    ) throws -> RawResponse {
        try server.request("PUT", target, headers: Self.json, body: Array(json.utf8))
    }

    @Test("a user is stored, put into force, listed and removed")
    func life() async throws {
        try await run { server, users, _, reads in
            let body = #"{"password_hash": "\#(Self.hash)"}"#
            let made = try put(server, "/v1/users/ann%20b", body)
            #expect(made.status == 201)
            #expect(
                try made.json(UserSet.self)
                    == UserSet(name: "ann b", created: true, disconnected: 0))
            #expect(reads.number == 1)
            let again = try put(server, "/v1/users/ann%20b?disconnect=true", body)
            #expect(again.status == 200)
            #expect(try again.json(UserSet.self).disconnected == 2)
            #expect(server.broker.disconnectedUsers == ["ann b"])
            let file = try PasswordFile.load(path: users)
            #expect(file.entries.map(\.userName.text) == ["ann b"])
            let page = try server.request("GET", "/v1/users").json(UserPage.self)
            #expect(page.users == [UserSummary(name: "ann b", hash: "argon2id m=8,t=1,p=1")])
            let removed = try server.request("DELETE", "/v1/users/ann%20b")
            #expect(
                try removed.json(UserRemoved.self)
                    == UserRemoved(removed: "ann b", disconnected: 0))
            #expect(try server.request("DELETE", "/v1/users/ann%20b").status == 404)
            #expect(try server.request("DELETE", "/v1/users/a:b").status == 404)
        }
    }

    @Test("a password is hashed, and never repeated")
    func password() async throws {
        try await run { server, users, _, _ in
            let made = try put(server, "/v1/users/ann", #"{"password": "secretword"}"#)
            #expect(made.status == 201 && !made.text.contains("secretword"))
            let verifier = PasswordVerifier(try PasswordFile.load(path: users))
            #expect(
                verifier.verify(userName: Array("ann".utf8), password: Array("secretword".utf8)))
            let wrong = try put(server, "/v1/users/ann", #"{"password_hash": "secretword"}"#)
            #expect(wrong.status == 400 && !wrong.text.contains("secretword"))
        }
    }

    @Test("a damaged file changes nothing, and says which")
    func damaged() async throws {
        try await run { server, users, _, _ in
            try write("no user\n", to: users)
            let refused = try put(
                server, "/v1/users/ann", #"{"password_hash": "\#(Self.hash)"}"#)
            #expect(refused.status == 503)
            #expect(try refused.problem().detail.contains("users:1:"))
        }
    }

    @Test("rules are shown with their version, and replaced whole or not at all")
    func rules() async throws {
        try await run { server, _, rules, reads in
            try write("allow everyone both #\n", to: rules)
            let shown = try server.request("GET", "/v1/access-rules")
            let tag = try #require(shown["ETag"])
            #expect(shown.text == "allow everyone both #\n" && tag.hasPrefix("\""))
            let text = Array("allow everyone publish a\n".utf8)
            let set = try server.request(
                "PUT", "/v1/access-rules", headers: ["If-Match: \(tag)"], body: text)
            #expect(set.status == 200 && reads.number == 1)
            #expect(try set.json(AccessRulesSet.self).rules == 7)
            let late = try server.request(
                "PUT", "/v1/access-rules", headers: ["If-Match: \(tag)"], body: text)
            #expect(late.status == 412)
            let wrong = try server.request(
                "PUT", "/v1/access-rules", body: Array("allow\n".utf8))
            #expect(wrong.status == 400)
            #expect(try wrong.problem().detail.hasPrefix("line 1: "))
            #expect(reads.number == 1)
            #expect(
                try server.request("GET", "/v1/access-rules").text == "allow everyone publish a\n")
        }
    }

    @Test("without files the answers say which setting names them")
    func withoutFiles() async throws {
        try await TestServer.run { server in
            for (target, key) in [("/v1/users", "password_file"), ("/v1/access-rules", "acl_file")]
            {
                let refused = try server.request("GET", target)
                #expect(refused.status == 409)
                #expect(try refused.problem().fix.contains(key), "\(target)")
            }
        }
    }
}

private func write(_ text: String, to path: String) throws {
    let stream = try #require(fopen(path, "w"))
    fputs(text, stream)
    fclose(stream)
}
