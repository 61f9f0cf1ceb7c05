import BrokerAPI
import FoundationEssentials
import RequestText
import Testing

@testable import AdminAPI

/// A viewer of `GET /v1/events` who reads event by event.
private struct Viewer {
    struct Event {
        var name: String
        var data: String

        func json<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
            try JSONDecoder().decode(type, from: Data(data.utf8))
        }
    }

    let connection: RawConnection
    let head: RawResponse

    init(_ server: TestServer, token: String = TestServer.token, receiveBufferBytes: CInt? = nil)
        throws
    {
        connection = try RawConnection(
            port: server.endpoints.port, receiveBufferBytes: receiveBufferBytes)
        try connection.send(TestServer.head("GET", "/v1/events", token: token))
        head = try connection.readHead()
    }

    /// The next event, which is one chunk; `nil` at the end of the stream.
    func next() throws -> Event? {
        let chunk = String(decoding: try connection.readChunk(), as: UTF8.self)
        if chunk.isEmpty { return nil }
        let lines = chunk.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard lines.count == 4, lines[2].isEmpty, lines[3].isEmpty,
            lines[0].hasPrefix("event: "), lines[1].hasPrefix("data: ")
        else { throw SocketError(call: "no event: \(chunk)", code: 0) }
        return Event(name: String(lines[0].dropFirst(7)), data: String(lines[1].dropFirst(6)))
    }

    func nextSnapshot() throws -> BrokerSnapshot {
        let event = try #require(try next())
        #expect(event.name == "snapshot")
        return try event.json()
    }
}

@Suite("Live figures: GET /v1/events")
struct EventRouteTests {
    private static func quick(
        _ change: @escaping (inout AdminServerConfiguration) -> Void = { _ in }
    ) -> TestServer.Changes {
        .init {
            $0.limits.snapshotInterval = .milliseconds(20)
            change(&$0)
        }
    }

    @Test("the stream says what its caller's token may do")
    func scopes() async throws {
        try await TestServer.run { server in
            let viewer = try Viewer(server)
            #expect(viewer.head["Hermes-Scopes"] == "admin")
        }
    }

    @Test("snapshots follow one another as server-sent events, in the form that is documented")
    func stream() async throws {
        let document = try OpenAPIModel(OpenAPIDocument.text(version: "1"))
        try await TestServer.run(with: Self.quick()) { server in
            let viewer = try Viewer(server)
            #expect(viewer.head.status == 200)
            #expect(viewer.head["Content-Type"] == "text/event-stream")
            #expect(viewer.head["Cache-Control"] == "no-store")
            #expect(viewer.head["X-Content-Type-Options"] == "nosniff")
            #expect(viewer.head["Transfer-Encoding"] == "chunked")
            let event = try #require(try viewer.next())
            #expect(
                document.misfits(
                    try JSONParser.parse(Array(event.data.utf8)),
                    try document.schema("Snapshot"), at: "snapshot") == [])
            let first: BrokerSnapshot = try event.json()
            let second = try viewer.nextSnapshot()
            #expect(second.clockMs >= first.clockMs + 15)
            #expect(first.ready)
            #expect(first.offline == max(0, 112 - StubBroker.figures.connections))
            #expect(first.publishesReceivedByQoS == [122, 123, 124])
            #expect(first.publishesSentByQoS == [125, 126, .max])
            #expect(first.accessRefusals == ["publish": 199])
            #expect(first.certificates.map(\.daysLeft) == [-2.5, 6.5])
            #expect(
                first.certificates.map(\.section) == ["listeners[1].tls", "listeners[2].tls"])
        }
    }

    @Test("a store that is not ready is told with its reason")
    func notReady() async throws {
        let broker = StubBroker { $0.notReadyReason = "the disk is full" }
        try await TestServer.run(broker, with: Self.quick()) { server in
            let snapshot = try Viewer(server).nextSnapshot()
            #expect(!snapshot.ready)
            #expect(snapshot.notReadyReason == "the disk is full")
        }
    }

    @Test("the store's times are counts within bounds that double, and last all of them")
    func storeTimes() throws {
        var store = StoreStatus()
        store.commitTimes.add(microseconds: 40)
        store.commitTimes.add(microseconds: 120)
        store.syncTimes.add(microseconds: 5_000_000)
        var status = StubBroker.status
        status.store = store
        let snapshot = BrokerSnapshot(
            status: status, figures: StubBroker.figures, atMs: 0, clockMs: 0)
        let times = try #require(snapshot.storeTimes)
        #expect(times.boundsMicroseconds.prefix(4) == [50, 100, 200, 400])
        #expect(times.boundsMicroseconds.last == 1_638_400 && times.boundsMicroseconds.count == 16)
        #expect(times.commits.prefix(3) == [1, 1, 2] && times.commits.last == 2)
        #expect(times.syncs[15] == 0 && times.syncs[16] == 1 && times.syncs.count == 17)
        status.store = nil
        let none = BrokerSnapshot(
            status: status, figures: StubBroker.figures, atMs: 0, clockMs: 0)
        #expect(none.storeTimes == nil)
    }

    @Test("all viewers see the same snapshots, each made once")
    func sharing() async throws {
        try await TestServer.run(with: Self.quick()) { server in
            let viewers = try (0..<8).map { _ in try Viewer(server) }
            let seen = try viewers.map { viewer in
                Set(try (0..<30).map { _ in try #require(try viewer.next()).data })
            }
            let common = seen.dropFirst().reduce(seen[0]) { $0.intersection($1) }
            #expect(common.count >= 15)
        }
    }

    @Test("no snapshot is made while nobody watches, and the first of a new viewer is fresh")
    func idle() async throws {
        try await TestServer.run(with: Self.quick()) { server in
            let first = try Viewer(server).nextSnapshot()
            var count = -1
            // Once the viewer has gone, the number stands still for ten intervals.
            try await eventually {
                defer { count = server.broker.statusRequests }
                try await Task.sleep(for: .milliseconds(200))
                return server.broker.statusRequests == count
            }
            #expect(try Viewer(server).nextSnapshot().clockMs >= first.clockMs + 200)
            #expect(server.broker.statusRequests > count)
        }
    }

    @Test("one viewer too many is told so, and gets the place of one that leaves")
    func bound() async throws {
        try await TestServer.run(with: Self.quick { $0.limits.viewers = 2 }) { server in
            var first: Viewer? = try Viewer(server)
            let second = try Viewer(server)
            _ = try first?.nextSnapshot()
            let third = try server.request("GET", "/v1/events")
            #expect(third.status == 503)
            #expect(third["Retry-After"] == "5")
            let problem = try third.problem()
            #expect(problem.type == "urn:hermes:problem:overloaded")
            #expect(problem.detail == "2 viewers follow the broker, which is the limit.")
            // A HEAD takes no place for longer than its answer.
            first = nil
            try await eventually {
                try server.request("HEAD", "/v1/events").status == 200
            }
            try await eventually { try Viewer(server).head.status == 200 }
            _ = try second.nextSnapshot()
        }
    }

    @Test("a viewer that does not read misses snapshots, and holds no other up")
    func slowViewer() async throws {
        try await TestServer.run(
            with: Self.quick { $0.limits.snapshotInterval = .milliseconds(1) }
        ) { server in
            let slow = try Viewer(server, receiveBufferBytes: 4_096)
            let quick = try Viewer(server)
            // More than any buffer between the two takes.
            var bytes = 0
            var last: Int64 = 0
            while bytes < 8_000_000 {
                let event = try #require(try quick.next())
                bytes += event.data.utf8.count
                last = try event.json(BrokerSnapshot.self).clockMs
            }
            var taken = 0
            while try slow.nextSnapshot().clockMs <= last { taken += 1 }
            #expect(taken > 0)
            #expect(taken * 2_000 < bytes / 2, "\(taken) snapshots were kept for it")
        }
    }

    @Test("a viewer that never reads is cut off, and its place is free")
    func stalledViewer() async throws {
        try await TestServer.run(
            with: Self.quick {
                $0.limits.snapshotInterval = .milliseconds(1)
                $0.limits.writeStall = .milliseconds(200)
                $0.limits.viewers = 1
            }
        ) { server in
            let stalled = try Viewer(server, receiveBufferBytes: 4_096)
            try await eventually { try server.request("HEAD", "/v1/events").status == 200 }
            #expect(try stalled.connection.readToEnd().count < 2_000_000)
        }
    }

    @Test("a broker that cannot be asked is told, and the stream goes on")
    func unavailable() async throws {
        try await TestServer.run(with: Self.quick()) { server in
            let viewer = try Viewer(server)
            _ = try viewer.nextSnapshot()
            server.broker.change { $0.unavailable = .overloaded }
            var event = try viewer.next()
            while event?.name == "snapshot" { event = try viewer.next() }
            #expect(event?.name == "problem")
            let problem = try #require(event).json(ProblemModel.self)
            #expect(problem.type == "urn:hermes:problem:overloaded")
            server.broker.change { $0.unavailable = nil }
            while event?.name == "problem" { event = try viewer.next() }
            #expect(event?.name == "snapshot")
        }
    }

    @Test("a revoked token ends its stream with the reason")
    func revoked() async throws {
        try await withTemporaryDirectory { folder in
            let checks = try TokenChecks(path: folder + "/tokens", logger: CapturedLog().logger)
            try await TestServer.run(with: Self.quick { $0.tokens = checks }) { server in
                let made = try server.post("/v1/tokens", json: #"{"name":"a","scopes":["read"]}"#)
                let viewer = try Viewer(server, token: made.json(TokenCreated.self).token)
                _ = try viewer.nextSnapshot()
                #expect(try server.request("DELETE", "/v1/tokens/a").status == 200)
                var event = try viewer.next()
                while event?.name == "snapshot" { event = try viewer.next() }
                #expect(event?.name == "end")
                #expect(try #require(event).json(ProblemModel.self).status == 401)
                #expect(try viewer.next() == nil)
            }
        }
    }

    @Test("a stop ends every stream at once with the reason, and the server with them")
    func stop() async throws {
        try await TestServer.run(
            with: .init {
                $0.limits.snapshotInterval = .seconds(3_600)
                $0.limits.drain = .seconds(60)
                $0.limits.linger = .milliseconds(50)
            }
        ) { server in
            let viewers = try (0..<3).map { _ in try Viewer(server) }
            for viewer in viewers { _ = try viewer.nextSnapshot() }
            server.stop()
            for viewer in viewers {
                let end = try #require(try viewer.next())
                #expect(end.name == "end")
                #expect(try end.json(ProblemModel.self).type == "urn:hermes:problem:stopping")
                #expect(try viewer.next() == nil)
                #expect(try viewer.connection.isClosedByServer())
            }
        }
    }

    /// Tries until the condition holds, for 20 s at most.
    private func eventually(_ condition: () async throws -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(20)
        while try await !condition() {
            try #require(ContinuousClock.now < deadline, "it did not come to pass within 20 s")
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}
