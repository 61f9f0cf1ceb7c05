import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("HTTP connections")
struct ConnectionTests {
    // MARK: Reuse

    @Test("a connection serves request after request")
    func keepAlive() async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            for number in 1...20 {
                let body = Array("\(number)".utf8)
                try connection.send(TestServer.head("POST", "/v1/publish?topic=t", body: body))
                try connection.send(body)
                let response = try connection.readResponse()
                #expect(response.status == 200)
                #expect(response["Connection"] == nil)
            }
            #expect(server.broker.publications.count == 20)
        }
    }

    @Test("pipelined requests are answered in order")
    func pipelining() async throws {
        let broker = StubBroker { $0.delay = .milliseconds(5) }
        try await TestServer.run(broker) { server in
            let connection = try server.connect()
            var requests = ""
            for number in 1...20 {
                requests +=
                    TestServer.head("POST", "/v1/publish?topic=t", body: [1]) + "\(number % 10)"
                requests += TestServer.head("GET", "/v1/clients/missing-\(number)")
            }
            try connection.send(requests)
            for number in 1...20 {
                #expect(try connection.readResponse().status == 200)
                let problem = try connection.readResponse().problem()
                #expect(problem.detail.contains("\"missing-\(number)\""))
            }
            #expect(broker.publications.map(\.payload) == (1...20).map { Array("\($0 % 10)".utf8) })
        }
    }

    @Test("Connection: close and HTTP/1.0 end the connection after the answer")
    func close() async throws {
        try await TestServer.run { server in
            for request in [
                TestServer.head("GET", "/healthz", headers: ["Connection: close"]),
                TestServer.head("GET", "/healthz", headers: ["Connection: Close"]),
                "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n",
            ] {
                let connection = try server.connect()
                // Bytes after it have no effect.
                try connection.send(
                    request + TestServer.head("DELETE", "/v1/clients/a"))
                let response = try connection.readResponse()
                #expect(response.status == 200)
                #expect(response["Connection"] == "close")
                #expect(try connection.isClosedByServer())
            }
            #expect(server.broker.disconnected.isEmpty)
        }
    }

    @Test("a request to change the protocol is answered, and is the connection's last")
    func upgrade() async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send(
                TestServer.head(
                    "GET", "/healthz", headers: ["Connection: Upgrade", "Upgrade: h2c"]))
            let response = try connection.readResponse()
            #expect(response.status == 200)
            #expect(response["Connection"] == "close")
            #expect(try connection.isClosedByServer())
        }
    }

    @Test("a client that has shut its side still gets its answer")
    func halfClosed() async throws {
        let broker = StubBroker { $0.delay = .milliseconds(20) }
        try await TestServer.run(broker) { server in
            let connection = try server.connect()
            try connection.send(TestServer.head("GET", "/v1/status"))
            connection.finishSending()
            #expect(try connection.readResponse().status == 200)
            #expect(try connection.isClosedByServer())
        }
    }

    // MARK: Broken requests

    @Test(
        "bytes that are not HTTP get a problem document, and the connection closes",
        arguments: [
            "HELLO\r\n\r\n", "GET /healthz HTTP/3.7\r\n\r\n", "GET  /healthz\r\n\r\n",
            "GET /healthz HTTP/1.1\r\nHost localhost\r\n\r\n",
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n",
            "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}",
        ])
    func malformed(bytes: String) async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send(bytes)
            let response = try connection.readResponse()
            #expect(try response.problem().type == "urn:hermes:problem:malformed-request")
            #expect(response["Connection"] == "close")
            #expect(try connection.isClosedByServer())
        }
    }

    @Test("garbage behind a request does not cost its answer")
    func garbageBehind() async throws {
        let broker = StubBroker { $0.delay = .milliseconds(20) }
        try await TestServer.run(broker) { server in
            let connection = try server.connect()
            try connection.send(TestServer.head("GET", "/v1/status") + "\0\0garbage\r\n\r\n")
            let response = try connection.readResponse()
            #expect(response.status == 200)
            #expect(response["Connection"] == "close")
            #expect(try connection.isClosedByServer())
        }
    }

    @Test(
        "a body that ends early is not published",
        arguments: [
            ("Content-Length: 10", "12345"), ("Transfer-Encoding: chunked", "5\r\n12345\r\n"),
            ("Transfer-Encoding: chunked", "5\r\n12"), ("Transfer-Encoding: chunked", "zz\r\n"),
        ])
    func cutBody(header: String, part: String) async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send(
                TestServer.head("POST", "/v1/publish?topic=t", headers: [header]) + part)
            connection.finishSending()
            #expect(
                try connection.readResponse().problem().type
                    == "urn:hermes:problem:malformed-request")

            let second = try server.connect()
            try second.send(
                TestServer.head("POST", "/v1/publish?topic=t", headers: [header]) + part)
            second.reset()
            // The server's single thread has handled the reset before it answers this.
            #expect(try server.request("GET", "/healthz").status == 200)
            #expect(server.broker.publications.isEmpty)
        }
    }

    // MARK: Sizes

    @Test(
        "headers above the limit are 431",
        arguments: [
            "X-Large: " + String(repeating: "x", count: 17_000) + "\r\n\r\n",
            "X-Large: " + String(repeating: "x", count: 17_000),
            (1...90).map { "X-\($0): " + String(repeating: "y", count: 200) + "\r\n" }.joined()
                + "\r\n",
            (1...200).map { "X-\($0): y\r\n" }.joined() + "\r\n",
        ])
    func headersTooLarge(headers: String) async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + headers)
            let response = try connection.readResponse()
            #expect(try response.problem().status == 431)
            #expect(response["Connection"] == "close")
        }
    }

    @Test("headers below the limit are taken")
    func headersFit() async throws {
        try await TestServer.run { server in
            let response = try server.request(
                "GET", "/healthz", headers: ["X-Large: " + String(repeating: "x", count: 15_000)])
            #expect(response.status == 200)
        }
    }

    @Test("a long target is 414, an endless one 431")
    func longTarget() async throws {
        try await TestServer.run { server in
            let long = "/v1/clients/" + String(repeating: "a", count: 8192)
            #expect(try server.request("GET", long).problem().status == 414)
            let connection = try server.connect()
            try connection.send("GET /" + String(repeating: "a", count: 100_000))
            #expect(try connection.readResponse().problem().status == 431)
        }
    }

    // MARK: Time

    @Test("an idle connection is closed, without a word")
    func idle() async throws {
        try await TestServer.run(with: .init { $0.limits.idle = .milliseconds(100) }) { server in
            let fresh = try server.connect()
            #expect(try fresh.isClosedByServer())
            let used = try server.connect()
            try used.send(TestServer.head("GET", "/healthz"))
            #expect(try used.readResponse().status == 200)
            #expect(try used.isClosedByServer())
        }
    }

    @Test("a head that does not end is 408")
    func slowHead() async throws {
        try await TestServer.run(with: .init { $0.limits.head = .milliseconds(100) }) { server in
            let connection = try server.connect()
            try connection.send("GET /healthz HTTP/1.1\r\nHost: local")
            let response = try connection.readResponse()
            #expect(try response.problem().type == "urn:hermes:problem:request-timeout")
            #expect(response["Connection"] == "close")
            #expect(try connection.isClosedByServer())
        }
    }

    @Test("a body that drips is 408, and nothing of it is published")
    func slowBody() async throws {
        try await TestServer.run(
            with: .init {
                $0.limits.bodyGrace = .milliseconds(100)
                $0.limits.bodyBytesPerSecond = 1000
            }
        ) { server in
            let connection = try server.connect()
            try connection.send(
                TestServer.head(
                    "POST", "/v1/publish?topic=t", headers: ["Content-Length: 100"]) + "drip")
            let response = try connection.readResponse()
            #expect(try response.problem().type == "urn:hermes:problem:request-timeout")
            #expect(response["Connection"] == "close")
            #expect(try connection.isClosedByServer())
            #expect(server.broker.publications.isEmpty)
        }
    }

    @Test("waiting for the data plane is not idleness")
    func slowAnswer() async throws {
        let broker = StubBroker { $0.delay = .milliseconds(300) }
        try await TestServer.run(
            broker,
            with: .init {
                $0.limits.idle = .milliseconds(50)
                $0.limits.head = .milliseconds(50)
                $0.limits.bodyGrace = .milliseconds(50)
            }
        ) { server in
            let response = try server.request("POST", "/v1/publish?topic=t", body: [1])
            #expect(response.status == 200)
        }
    }

    /// Answers `GET /v1/clients` with 20 MB, more than the kernel buffers for a connection.
    private static let talkative: @Sendable () -> StubBroker = {
        let long = String(repeating: "x", count: 100_000)
        let clients = (0..<200).map { StubBroker.summary("\($0)" + long) }
        return StubBroker { $0.page = ClientPage(clients: clients, next: nil) }
    }

    @Test(
        "a client that takes its time gets the whole of an answer, the last one too",
        arguments: [["Connection: close"], []])
    func slowReader(headers: [String]) async throws {
        try await TestServer.run(
            Self.talkative(),
            with: .init {
                $0.limits.linger = .milliseconds(50)
                $0.limits.idle = .milliseconds(200)
            }
        ) { server in
            let connection = try RawConnection(
                port: server.endpoints.port, receiveBufferBytes: 65_536)
            try connection.send(TestServer.head("GET", "/v1/clients", headers: headers))
            let head = try connection.readHead()
            #expect(head.status == 200)
            // When this connection has been idle for too long, the answer has waited for longer
            // than both limits.
            let idle = try server.connect()
            #expect(try idle.isClosedByServer())
            #expect(try connection.readBody(of: head).count > 20_000_000)
            #expect(try connection.isClosedByServer())
        }
    }

    @Test(
        "a client that has shut its side gets the whole of an answer, the last one too",
        arguments: [["Connection: close"], []])
    func slowReaderThatHasFinished(headers: [String]) async throws {
        try await TestServer.run(
            Self.talkative(),
            with: .init {
                $0.limits.linger = .milliseconds(50)
                $0.limits.idle = .milliseconds(200)
            }
        ) { server in
            let connection = try RawConnection(
                port: server.endpoints.port, receiveBufferBytes: 65_536)
            try connection.send(TestServer.head("GET", "/v1/clients", headers: headers))
            connection.finishSending()
            let head = try connection.readHead()
            // The server has noticed the end by then.
            let idle = try server.connect()
            #expect(try idle.isClosedByServer())
            #expect(try connection.readBody(of: head).count > 20_000_000)
            #expect(try connection.isClosedByServer())
        }
    }

    @Test("a shutdown sends the answer of a client that has ended its direction")
    func stopAfterHalfClose() async throws {
        try await TestServer.run(
            Self.talkative(),
            with: .init {
                $0.limits.linger = .milliseconds(50)
                $0.limits.drain = .seconds(60)
            }
        ) { server in
            let connection = try RawConnection(
                port: server.endpoints.port, receiveBufferBytes: 65_536)
            try connection.send(TestServer.head("GET", "/v1/clients"))
            let head = try connection.readHead()
            connection.finishSending()
            let idle = try server.connect()
            try idle.send(TestServer.head("GET", "/healthz"))
            #expect(try idle.readResponse().status == 200)
            server.stop()
            #expect(try idle.isClosedByServer())
            #expect(try connection.readBody(of: head).count > 20_000_000)
            #expect(try connection.isClosedByServer())
        }
    }

    @Test("a stop lets an answer out that the client is still taking")
    func stopDuringAnswer() async throws {
        try await TestServer.run(
            Self.talkative(),
            with: .init {
                $0.limits.linger = .milliseconds(50)
                $0.limits.drain = .seconds(60)
            }
        ) { server in
            let connection = try RawConnection(
                port: server.endpoints.port, receiveBufferBytes: 65_536)
            try connection.send(TestServer.head("GET", "/v1/clients"))
            let head = try connection.readHead()
            let idle = try server.connect()
            try idle.send(TestServer.head("GET", "/healthz"))
            #expect(try idle.readResponse().status == 200)
            server.stop()
            #expect(try idle.isClosedByServer())
            #expect(head.status == 200)
            #expect(try connection.readBody(of: head).count > 20_000_000)
            #expect(try connection.isClosedByServer())
        }
    }

    @Test("a client that takes no answer is cut off")
    func writeStall() async throws {
        try await TestServer.run(
            Self.talkative(),
            with: .init {
                $0.limits.writeStall = .milliseconds(200)
                $0.limits.connections = 1
            }
        ) { server in
            let connection = try RawConnection(
                port: server.endpoints.port, receiveBufferBytes: 4096)
            try connection.send(TestServer.head("GET", "/v1/clients"))
            // The only place is free once the server has closed the stalled connection.
            try await server.waitUntilServed()
            // The bytes in the kernel's buffer: few, so that a slow client is seen to make
            // progress.
            let received = try connection.readToEnd()
            #expect(received.count < 1_000_000)
        }
    }

    // MARK: Number

    /// A request that is under way until its connection ends: its body does not come.
    private static func takePlace(of connection: RawConnection) throws {
        let headers = ["Content-Length: 10", "Expect: 100-continue"]
        try connection.send(TestServer.head("POST", "/v1/publish?topic=t", headers: headers))
        #expect(try connection.readResponse().status == 100)
    }

    @Test("a newcomer takes the place of the oldest connection that has shown no token")
    func displacedStranger() async throws {
        try await TestServer.run(with: .init { $0.limits.connections = 2 }) { server in
            let held = [try server.connect(), try server.connect()]
            for connection in held {
                try connection.send(TestServer.head("GET", "/healthz", token: nil))
                #expect(try connection.readResponse().status == 200)
            }
            let newcomer = try server.connect()
            try newcomer.send(TestServer.head("GET", "/healthz", token: nil))
            #expect(try newcomer.readResponse().status == 200)
            #expect(try held[0].isClosedByServer())
            try held[1].send(TestServer.head("GET", "/healthz", token: nil))
            #expect(try held[1].readResponse().status == 200)
        }
    }

    @Test("a caller makes room between two requests, and not during one")
    func displacedCaller() async throws {
        try await TestServer.run(with: .init { $0.limits.connections = 2 }) { server in
            let busy = try server.connect()
            try Self.takePlace(of: busy)
            let idle = try server.connect()
            try idle.send(TestServer.head("GET", "/v1/status"))
            #expect(try idle.readResponse().status == 200)
            #expect(try server.request("GET", "/v1/status").status == 200)
            #expect(try idle.isClosedByServer())
            try busy.send("0123456789")
            #expect(try busy.readResponse().status == 200)
        }
    }

    @Test("a wrong token takes the trust away that a good one gave")
    func distrusted() async throws {
        try await TestServer.run(with: .init { $0.limits.connections = 8 }) { server in
            let former = try server.connect()
            try former.send(TestServer.head("GET", "/v1/status"))
            #expect(try former.readResponse().status == 200)
            try former.send(TestServer.head("GET", "/v1/status", token: "wrong"))
            #expect(try former.readResponse().status == 401)
            let newcomers = try (1...8).map { _ in try server.connect() }
            #expect(try former.isClosedByServer())
            withExtendedLifetime(newcomers) {}
        }
    }

    @Test("one connection too many is 503 while a caller's request is under way")
    func tooMany() async throws {
        try await TestServer.run(with: .init { $0.limits.connections = 1 }) { server in
            let held = try server.connect()
            try Self.takePlace(of: held)
            let refused = try server.connect()
            let response = try refused.readResponse()
            #expect(try response.problem().type == "urn:hermes:problem:too-many-connections")
            #expect(response["Retry-After"] == "5")
            #expect(try refused.isClosedByServer())
            held.reset()
            try await server.waitUntilServed()
        }
    }

    @Test("callers leave places to strangers, and the last of them is told so")
    func reserve() async throws {
        try await TestServer.run(with: .init { $0.limits.connections = 8 }) { server in
            let held = try (1...7).map { _ in
                let connection = try server.connect()
                try Self.takePlace(of: connection)
                return connection
            }
            #expect(try server.request("GET", "/healthz", token: nil).status == 200)
            let problem = try server.request("GET", "/v1/status").problem()
            #expect(problem.type == "urn:hermes:problem:too-many-connections")
            withExtendedLifetime(held) {}
        }
    }

    @Test("the Unix socket has places of its own")
    func unixSocketPlaces() async throws {
        let directory = try makeTemporaryDirectory()
        defer { removeDirectory(directory) }
        let path = directory + "/admin.sock"
        try await TestServer.run(
            with: .init {
                $0.unixSocketPath = path
                $0.limits.connections = 1
                $0.limits.unixConnections = 1
            }
        ) { server in
            let held = try server.connect()
            try Self.takePlace(of: held)
            let idle = try RawConnection(unixPath: path)
            try idle.send(TestServer.head("GET", "/v1/status", token: nil))
            #expect(try idle.readResponse().status == 200)
            let next = try RawConnection(unixPath: path)
            try next.send(TestServer.head("GET", "/v1/status", token: nil))
            #expect(try next.readResponse().status == 200)
            #expect(try idle.isClosedByServer())
        }
    }

    /// The figure of one metric without labels.
    private static func figure(_ name: String, in metrics: String) -> Int? {
        metrics.split(separator: "\n").first { $0.hasPrefix(name + " ") }
            .flatMap { $0.split(separator: " ").last }.flatMap { Int($0) }
    }

    @Test("each connection too many is counted, and a line a second names one of them")
    func flood() async throws {
        let log = CapturedLog()
        let begin = ContinuousClock.now
        try await TestServer.run(with: .init { $0.limits.connections = 1 }, logger: log.logger) {
            server in
            let held = try server.connect()
            try Self.takePlace(of: held)
            for _ in 0..<40 {
                let answer = String(decoding: try server.connect().readToEnd(), as: UTF8.self)
                #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 503 "))
            }
            held.reset()
            let metrics = try await server.waitUntilServed("/metrics").text
            // Includes connections that waited until the server accepted again.
            let refused = Self.figure("hermes_admin_connections_refused_total", in: metrics)
            #expect(try #require(refused) >= 40)
            let lines = log.lines(of: "Admin connection refused: too many are open")
            #expect(lines.first?.metadata["admin.peer"]?.hasPrefix("127.0.0.1:") == true)
            #expect(lines.count <= 1 + Int((ContinuousClock.now - begin).components.seconds))
        }
    }

    @Test("each connection that made room is counted, and a line a second names one of them")
    func displacements() async throws {
        let log = CapturedLog()
        let begin = ContinuousClock.now
        try await TestServer.run(with: .init { $0.limits.connections = 1 }, logger: log.logger) {
            server in
            let held = try (0..<40).map { _ in try server.connect() }
            for connection in held.dropLast() { #expect(try connection.isClosedByServer()) }
            let metrics = try server.request("GET", "/metrics").text
            #expect(Self.figure("hermes_admin_connections_displaced_total", in: metrics) == 40)
            let lines = log.lines(of: "Admin connection closed to make room")
            #expect(lines.first?.metadata["admin.peer"]?.hasPrefix("127.0.0.1:") == true)
            #expect(lines.first?.metadata["admin.limit"] == "1")
            #expect(lines.count <= 1 + Int((ContinuousClock.now - begin).components.seconds))
        }
    }

    // MARK: Stop

    @Test("a stop lets the request under way end, and closes idle connections")
    func stop() async throws {
        let broker = StubBroker { $0.delay = .milliseconds(100) }
        try await TestServer.run(broker) { server in
            let idle = try server.connect()
            try idle.send(TestServer.head("GET", "/healthz"))
            #expect(try idle.readResponse().status == 200)
            let busy = try server.connect()
            try busy.send(TestServer.head("POST", "/v1/publish?topic=t", body: [1]) + "x")
            // The stub answers slowly, so the request is in progress when this one is answered.
            #expect(try server.request("GET", "/healthz").status == 200)
            server.stop()
            let response = try busy.readResponse()
            #expect(response.status == 200)
            #expect(response["Connection"] == "close")
            #expect(try idle.isClosedByServer())
            #expect(broker.publications.count == 1)
        }
    }

    @Test("a stop does not wait longer than its drain time")
    func stopIsBounded() async throws {
        // Large enough to tell a delay of ten minutes from none, even on two busy cores.
        let broker = StubBroker { $0.delay = .seconds(600) }
        let start = ContinuousClock.now
        try await TestServer.run(broker, with: .init { $0.limits.drain = .milliseconds(100) }) {
            server in
            let connection = try server.connect()
            try connection.send(TestServer.head("POST", "/v1/publish?topic=t", body: [1]) + "x")
            #expect(try server.request("GET", "/healthz").status == 200)
        }
        #expect(ContinuousClock.now - start < .seconds(540))
    }
}

extension TestServer {
    /// Retries until a new connection is served, and returns its answer; fails after 10 s.
    @discardableResult
    fileprivate func waitUntilServed(_ target: String = "/healthz") async throws -> RawResponse {
        let deadline = ContinuousClock.now + .seconds(10)
        while true {
            let response = try request("GET", target)
            if response.status == 200 { return response }
            try #require(ContinuousClock.now < deadline, "no connection was let in again")
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}
