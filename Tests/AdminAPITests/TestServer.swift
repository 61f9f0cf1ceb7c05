import Logging
import Testing

@testable import AdminAPI

/// A real server on a free port of the loopback interface.
struct TestServer: Sendable {
    static let token = "test-token-0123456789"

    /// Changes of a test to the configuration.
    struct Changes {
        var apply: (inout AdminServerConfiguration) -> Void

        init(_ apply: @escaping (inout AdminServerConfiguration) -> Void) {
            self.apply = apply
        }
    }

    /// The routes of a server that can do everything and does not run.
    static func routeTable() throws -> RouteTable {
        var configuration = AdminServerConfiguration(
            token: try AdminToken(token, source: "test"), durability: "none", version: "1")
        configuration.control = StubConfiguration()
        return try AdminServer(
            configuration: configuration, broker: StubBroker(), logger: silentLogger
        ).routes
    }

    let endpoints: AdminEndpoints
    let broker: StubBroker
    /// Begins to stop the server, as SIGTERM would.
    let stop: @Sendable () -> Void

    /// Runs a server during the body, and stops it as in production.
    static func run(
        _ broker: StubBroker = StubBroker(), with changes: Changes = Changes { _ in },
        logger: Logger? = nil, body: (TestServer) async throws -> Void
    ) async throws {
        var configuration = AdminServerConfiguration(
            token: try AdminToken(token, source: "test"), durability: "none", version: "1.2.3")
        configuration.port = 0
        configuration.control = StubConfiguration()
        changes.apply(&configuration)
        let server = try AdminServer(
            configuration: configuration, broker: broker, logger: logger ?? silentLogger)
        let (listening, announce) = AsyncStream<AdminEndpoints>.makeStream()
        let running = Task {
            defer { announce.finish() }
            try await server.run { announce.yield($0) }
        }
        let result: Result<Void, any Error>
        do {
            var iterator = listening.makeAsyncIterator()
            if let endpoints = await iterator.next() {
                let server = TestServer(
                    endpoints: endpoints, broker: broker, stop: { running.cancel() })
                try await body(server)
            }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        running.cancel()
        try await running.value
        try result.get()
    }

    private static var silentLogger: Logger {
        var logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        logger.logLevel = .trace
        return logger
    }

    func connect() throws -> RawConnection { try RawConnection(port: endpoints.port) }

    /// One request on a connection of its own.
    func request(
        _ method: String, _ target: String, headers: [String] = [],
        token: String? = TestServer.token, body: [UInt8]? = nil
    ) throws -> RawResponse {
        let connection = try connect()
        try connection.send(Self.head(method, target, headers: headers, token: token, body: body))
        try connection.send(body ?? [])
        return try connection.readResponse(toHead: method == "HEAD")
    }

    /// A JSON request on a connection of its own.
    func post(_ target: String, json: String) throws -> RawResponse {
        try request(
            "POST", target, headers: ["Content-Type: application/json"], body: Array(json.utf8))
    }

    static func head(
        _ method: String, _ target: String, headers: [String] = [],
        token: String? = TestServer.token, body: [UInt8]? = nil
    ) -> String {
        var lines = ["\(method) \(target) HTTP/1.1", "Host: localhost"]
        if let token { lines.append("Authorization: Bearer \(token)") }
        if let body { lines.append("Content-Length: \(body.count)") }
        return (lines + headers).joined(separator: "\r\n") + "\r\n\r\n"
    }
}
