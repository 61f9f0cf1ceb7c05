import BrokerAPI
import FoundationEssentials
import Testing

@testable import AdminAPI

@Suite("Batches of messages")
struct BatchRouteTests {
    /// One line of an answer.
    private struct ResultLine: Decodable {
        var line: Int
        var messageID: String?
        var matched: Int?
        var error: ProblemModel?

        enum CodingKeys: String, CodingKey {
            case line, matched, error
            case messageID = "message_id"
        }
    }

    private static let headers = ["Content-Type: application/x-ndjson"]

    private static func batch(
        _ server: TestServer, _ text: String, to target: String = "/v1/messages/batch"
    ) throws -> [ResultLine] {
        let connection = try server.connect()
        let body = Array(text.utf8)
        try connection.send(TestServer.head("POST", target, headers: headers, body: body) + text)
        return try results(connection)
    }

    /// The results until the server closes.
    private static func results(_ connection: RawConnection) throws -> [ResultLine] {
        let head = try connection.readHead()
        #expect(head.status == 200)
        #expect(head["Content-Type"] == "application/x-ndjson")
        #expect(head["Transfer-Encoding"] == "chunked")
        return try lines(connection.readChunks())
    }

    private static func lines(_ body: [UInt8]) throws -> [ResultLine] {
        #expect(body.isEmpty || body.last == 0x0A)
        return try body.split(separator: 0x0A).map {
            try JSONDecoder().decode(ResultLine.self, from: Data($0))
        }
    }

    private static func message(_ payload: String, topic: String = "t") -> String {
        #"{"topic":"\#(topic)","payload":"\#(payload)"}"# + "\n"
    }

    @Test("each line is answered in order; a bad line does its neighbours no harm")
    func badLines() async throws {
        try await TestServer.run { server in
            let results = try Self.batch(
                server,
                Self.message("1") + "not json\n" + "\n" + Self.message("2", topic: "a/+")
                    + #"{"topic":"t","payload":"3","message_id":"mine"}"#)
            #expect(results.map(\.line) == [1, 2, 4, 5])
            #expect(results.map(\.matched) == [3, nil, nil, 3])
            #expect(results.map { $0.messageID?.count } == [36, nil, nil, 4])
            let kinds = results.map { $0.error?.type.split(separator: ":").last }
            #expect(kinds == [nil, "invalid-json", "invalid-topic", nil])
            #expect(
                results[1].error?.detail == "The line is not JSON at column 1: expected a value, "
                    + "found the word `not`.")
            #expect(server.broker.publications.map(\.payload) == [[0x31], [0x33]])
            #expect(server.broker.groups == [2])
        }
    }

    @Test("order statuses name their order on the line")
    func orders() async throws {
        try await TestServer.run { server in
            let results = try Self.batch(
                server,
                """
                {"order_id":"4711","sales_id":"7","status":"APPROVED"}
                {"sales_id":"7","status":"APPROVED"}
                {"orderId":"4712","salesId":"7","status":4}

                """, to: "/v1/orders/batch")
            #expect(results.map { $0.error?.field } == [nil, "order_id", nil])
            #expect(
                server.broker.publications.map { String(decoding: $0.messageID, as: UTF8.self) }
                    == results.compactMap(\.messageID))
            #expect(
                server.broker.publications.map { String(decoding: $0.topic, as: UTF8.self) }
                    == ["orders/7/4711/status", "orders/7/4712/status"])
        }
    }

    @Test("results come while the client still sends, and in whatever pieces lines come")
    func interleaved() async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send(
                TestServer.head(
                    "POST", "/v1/messages/batch",
                    headers: Self.headers + ["Transfer-Encoding: chunked"]))
            #expect(try connection.readHead().status == 200)
            for number in 1...3 {
                let line = Self.message("\(number)")
                for byte in line.utf8 {
                    try connection.send("1\r\n" + String(decoding: [byte], as: UTF8.self) + "\r\n")
                }
                let result = try Self.lines(connection.readChunk())
                #expect(result.map(\.line) == [number])
            }
            try connection.send("0\r\n\r\n")
            #expect(try connection.readChunk() == [])
            #expect(server.broker.publications.map(\.payload) == [[0x31], [0x32], [0x33]])
        }
    }

    @Test("a line that is too long is refused, the rest goes on")
    func longLine() async throws {
        try await TestServer.run(with: .init { $0.maximumBodyBytes = 1_000 }) { server in
            let long = String(repeating: "x", count: 300_000)
            let results = try Self.batch(
                server, Self.message("1") + Self.message(long) + Self.message("3"))
            #expect(results.map { $0.error?.status } == [nil, 413, nil])
            #expect(
                results[1].error?.detail == "The line is longer than 1000 bytes.")
        }
    }

    @Test("what the store refuses says so on its line, with the cure")
    func refused() async throws {
        let broker = StubBroker { $0.refusals = [[0x32]: .storeRefuses, [0x33]: .diskFull] }
        try await TestServer.run(broker) { server in
            let results = try Self.batch(server, (1...4).map { Self.message("\($0)") }.joined())
            #expect(results.map { $0.error?.status } == [nil, 503, 507, nil])
            #expect(results.allSatisfy { $0.error == nil || $0.error?.fix != nil })
            broker.change { $0.unavailable = .overloaded }
            let all = try Self.batch(server, (1...4).map { Self.message("\($0)") }.joined())
            #expect(
                all.map { $0.error?.type }
                    == Array(
                        repeating: "urn:hermes:problem:overloaded", count: 4))
        }
    }

    @Test("groups are bounded, and lines that come meanwhile go together")
    func groups() async throws {
        try await TestServer.run(StubBroker { $0.delay = .milliseconds(20) }) { server in
            let results = try Self.batch(
                server, (1...10_000).map { Self.message("\($0)") }.joined())
            #expect(results.map(\.line) == Array(1...10_000))
            let groups = server.broker.groups
            #expect(groups.reduce(0, +) == 10_000)
            #expect(groups.max() ?? 0 <= LineGroup<PreparedMessage>.maximumLines)
            #expect(groups.count < 100)
            let isInOrder =
                server.broker.publications.map(\.payload)
                == (1...10_000).map { Array("\($0)".utf8) }
            #expect(isInOrder)
        }
    }

    @Test("a body that stops gets a last line that says so, and what came before is answered")
    func lateBody() async throws {
        let changes = TestServer.Changes { $0.limits.bodyGrace = .milliseconds(300) }
        try await TestServer.run(StubBroker { $0.delay = .milliseconds(600) }, with: changes) {
            let connection = try $0.connect()
            try connection.send(
                TestServer.head(
                    "POST", "/v1/messages/batch",
                    headers: Self.headers + ["Content-Length: 100000"]) + Self.message("1"))
            let results = try Self.results(connection)
            // The wait for the data plane is not the client's.
            #expect(results.map(\.line) == [1, 2])
            #expect(results.map { $0.error?.status } == [nil, 408])
        }
    }

    @Test("a body that cannot be parsed gets a last line that says so")
    func malformedBody() async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            let line = Self.message("1")
            try connection.send(
                TestServer.head(
                    "POST", "/v1/messages/batch",
                    headers: Self.headers + ["Transfer-Encoding: chunked"])
                    + String(line.utf8.count, radix: 16) + "\r\n" + line + "\r\nnonsense")
            let results = try Self.results(connection)
            #expect(results.map(\.line) == [1, 2])
            #expect(results.map { $0.error?.status } == [nil, 400])
        }
    }

    @Test("a stop of the server ends a batch with a last line that says so")
    func stopping() async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send(
                TestServer.head(
                    "POST", "/v1/messages/batch",
                    headers: Self.headers + ["Content-Length: 100000"]) + Self.message("1"))
            #expect(try connection.readHead().status == 200)
            #expect(try Self.lines(connection.readChunk()).map(\.line) == [1])
            server.stop()
            let rest = try Self.lines(connection.readChunks())
            #expect(rest.map(\.line) == [2])
            #expect(rest.map { $0.error?.type } == ["urn:hermes:problem:stopping"])
        }
    }

    @Test("a client that takes no results is not read further, and closed after the write stall")
    func stalledReader() async throws {
        let changes = TestServer.Changes {
            $0.limits.writeStall = .milliseconds(500)
            $0.limits.sendBufferBytes = 4_096
        }
        try await TestServer.run(with: changes) { server in
            let connection = try RawConnection(
                port: server.endpoints.port, receiveBufferBytes: 4_096)
            let lines = (1...1_000).map { Self.message("\($0)") }.joined()
            try connection.send(
                TestServer.head(
                    "POST", "/v1/messages/batch",
                    headers: Self.headers + ["Transfer-Encoding: chunked"]))
            let chunk = String(lines.utf8.count, radix: 16) + "\r\n" + lines + "\r\n"
            var sent = 0
            #expect(throws: SocketError.self) {
                while sent < 10_000 {
                    try connection.send(chunk)
                    sent += 1
                }
            }
            // Far less than was sent: the rest stayed in buffers of the kernel.
            #expect(server.broker.publications.count < 1_000 * sent + 1_000)
            #expect(server.broker.publications.count < 200_000)
        }
    }

    @Test("at most so many batches are under way; the place of one that has ended is free")
    func places() async throws {
        try await TestServer.run(with: .init { $0.limits.batches = 2 }) { server in
            let head = TestServer.head(
                "POST", "/v1/messages/batch", headers: Self.headers + ["Content-Length: 40"])
            var open: [RawConnection] = []
            for _ in 1...2 {
                let connection = try server.connect()
                try connection.send(head)
                #expect(try connection.readHead().status == 200)
                open.append(connection)
            }
            let third = try server.connect()
            try third.send(head)
            let refusal = try third.readResponse()
            #expect(refusal.status == 503)
            #expect(refusal["Retry-After"] == "5")
            open[0].reset()
            open.removeFirst()
            var status = 503
            while status == 503 {
                let connection = try server.connect()
                try connection.send(head)
                status = try connection.readHead().status
            }
            #expect(status == 200)
        }
    }

    @Test("a batch of another type is refused before it is read")
    func contentType() async throws {
        try await TestServer.run { server in
            let response = try server.post("/v1/messages/batch", json: "{}")
            #expect(response.status == 415)
            #expect(try response.problem().fix == "Send `Content-Type: application/x-ndjson`.")
        }
    }
}

extension RawConnection {
    /// The content of the next chunk of a body; empty for the last one.
    func readChunk() throws -> [UInt8] {
        let size = try readLine()
        guard let count = Int(size, radix: 16) else {
            throw SocketError(call: "no chunk size: \(size)", code: 0)
        }
        defer { _ = try? readLine() }
        return try read(count)
    }

    /// The content of all chunks to the last one.
    func readChunks() throws -> [UInt8] {
        var content: [UInt8] = []
        while true {
            let chunk = try readChunk()
            if chunk.isEmpty { return content }
            content += chunk
        }
    }
}
