import Addresses
import BrokerAPI
import Glibc
import Testing

@testable import AdminAPI

@Suite("Bans and locks")
struct BanRouteTests {
    /// Runs a server with a book of bans in a folder of its own.
    private func run(
        _ broker: StubBroker = StubBroker(), _ body: (TestServer) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { folder in
            let book = try BanBook(dataDirectory: folder)
            try await TestServer.run(broker, with: .init { $0.bans = book }, body: body)
        }
    }

    @Test("a ban is stored, handed to the broker, listed and lifted")
    func life() async throws {
        try await run(StubBroker { $0.bannedConnections = 3 }) { server in
            let made = try server.post(
                "/v1/bans", json: #"{"client_id": "phone/7", "for_s": 60, "reason": "floods"}"#)
            #expect(made.status == 201)
            let created = try made.json(BanCreated.self)
            #expect(created.disconnected == 3 && created.ban.clientID == "phone/7")
            #expect(created.ban.by == "admin" && created.ban.reason == "floods")
            #expect(created.ban.expiresMs == created.ban.createdMs + 60_000)
            #expect(server.broker.banTables.map(\.bans.count) == [1])

            let again = try server.post("/v1/bans", json: #"{"client_id": "phone/7"}"#)
            #expect(again.status == 200)
            #expect(try again.json(BanCreated.self).ban.id == created.ban.id)
            _ = try server.post("/v1/bans", json: #"{"address": "::ffff:192.0.2.0/120"}"#)
            let list = try server.request("GET", "/v1/bans").json(BanList.self)
            #expect(list.bans.map(\.address) == [nil, "192.0.2.0/24"] && list.next == nil)
            let page = try server.request("GET", "/v1/bans?limit=1").json(BanList.self)
            #expect(page.bans.count == 1)
            let next = try #require(page.next)
            let rest = try server.request("GET", "/v1/bans?cursor=\(next)").json(BanList.self)
            #expect(rest.bans == [list.bans[1]] && rest.next == nil)

            let target = "/v1/bans/\(created.ban.id)"
            let lifted = try server.request("DELETE", target)
            #expect(try lifted.json(BanLifted.self).lifted.clientID == "phone/7")
            #expect(try server.request("DELETE", target).status == 404)
            #expect(try server.request("DELETE", "/v1/bans/none").status == 404)
            let generations = server.broker.banTables.map(\.generation)
            #expect(generations == generations.sorted() && generations.count == 5)
        }
    }

    @Test("what was written and not taken is told, and a repeat is harmless")
    func busy() async throws {
        try await run(StubBroker { $0.unavailable = .stopping }) { server in
            let refused = try server.post("/v1/bans", json: #"{"user_name": "ann"}"#)
            #expect(refused.status == 503)
            server.broker.change { $0.unavailable = nil }
            #expect(try server.post("/v1/bans", json: #"{"user_name": "ann"}"#).status == 200)
        }
    }

    @Test(
        "a busy broker is not waited for: the answer says when to repeat, and a repeat is harmless")
    func overloaded() async throws {
        try await run(StubBroker { $0.unavailable = .overloaded }) { server in
            let refused = try server.post("/v1/bans", json: #"{"user_name": "ann"}"#)
            #expect(refused.status == 503 && refused["Retry-After"] == "1")
            #expect(try refused.problem().detail.contains("in the file of bans"))
            server.broker.change { $0.unavailable = nil }
            #expect(try server.post("/v1/bans", json: #"{"user_name": "ann"}"#).status == 200)
            #expect(server.broker.banTables.map(\.bans.count) == [1])
        }
    }

    @Test("a backup gets the file of bans, and none is made with a damaged one")
    func backup() async throws {
        try await withTemporaryDirectory { folder in
            let book = try BanBook(dataDirectory: folder)
            try await TestServer.run(StubBroker(), with: .init { $0.bans = book }) { server in
                let target = "/v1/backup?directory=/var/backups/1"
                #expect(try server.request("POST", target).status == 200)
                #expect(server.broker.savedBans == nil)
                _ = try server.post("/v1/bans", json: #"{"user_name": "ann"}"#)
                #expect(try server.request("POST", target).status == 200)
                let saved = try #require(server.broker.savedBans)
                #expect(String(decoding: saved, as: UTF8.self).contains(" user:ann "))

                let stream = try #require(fopen(folder + "/bans", "w"))
                fputs("no ban\n", stream)
                fclose(stream)
                let refused = try server.request("POST", target).problem()
                #expect(refused.type == "urn:hermes:problem:ban-file")
                #expect(server.broker.backups.count == 2)
            }
        }
    }

    @Test("clients in trouble, of one kind or all")
    func troubles() async throws {
        func event(_ kind: ClientEvent.Kind, _ reason: String) -> ClientEvent {
            ClientEvent(kind: kind, firstMs: 1, lastMs: 2, count: 3, reason: reason)
        }
        let stub = StubBroker {
            $0.events = [
                "a": [event(.connected, "new"), event(.refused, "banned")],
                "b": [event(.denied, "subscribe")], "c": [event(.disconnected, "peer_closed")],
            ]
        }
        try await run(stub) { server in
            func found(_ query: String) throws -> [ClientTrouble] {
                try server.request("GET", "/v1/troubles\(query)").json(TroubleList.self).troubles
            }
            #expect(
                try found("") == [
                    ClientTrouble(clientID: "a", event: event(.refused, "banned")),
                    ClientTrouble(clientID: "b", event: event(.denied, "subscribe")),
                ])
            #expect(try found("?kind=denied").map(\.clientID) == ["b"])
            #expect(try found("?limit=1").map(\.clientID) == ["a"])
            let wrong = try server.request("GET", "/v1/troubles?kind=connected")
            #expect(wrong.status == 400)
        }
    }

    @Test("locks are listed, and ended for a network or all")
    func lockouts() async throws {
        let lock = Lockout(userName: "ann", address: "192.0.2.7", wrongPasswords: 10, untilMs: 9)
        try await run(StubBroker { $0.lockouts = [lock] }) { server in
            let list = try server.request("GET", "/v1/lockouts").json(LockoutList.self)
            #expect(list.lockouts == [lock])
            let one = try server.request("DELETE", "/v1/lockouts?address=192.0.2.0/24")
            #expect(try one.json(LockoutsCleared.self).cleared == 1)
            #expect(try server.request("DELETE", "/v1/lockouts").status == 200)
            #expect(try server.request("DELETE", "/v1/lockouts?address=x").status == 400)
            let network = try #require(IPNetwork("192.0.2.0/24"))
            #expect(server.broker.clearedNetworks == [network, nil])
        }
    }
}
