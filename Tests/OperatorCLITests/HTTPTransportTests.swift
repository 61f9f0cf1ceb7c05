import Dispatch
import Glibc
import Synchronization
import Testing

@testable import OperatorCLI

@Suite("HTTPTransport")
struct HTTPTransportTests {
    private func send(
        _ request: AdminRequest, to endpoint: AdminEndpoint, timeout: Duration = .seconds(20)
    ) async -> Result<AdminResponse, CommandFailure> {
        let transport = HTTPTransport(endpoint: endpoint, timeout: timeout)
        let result: Result<AdminResponse, CommandFailure>
        do throws(CommandFailure) {
            result = .success(try await transport.send(request))
        } catch {
            result = .failure(error)
        }
        await transport.close()
        return result
    }

    private static let answer = """
        HTTP/1.1 404 Not Found\r\nContent-Type: Application/Problem+JSON; charset=utf-8\r\n\
        Content-Length: 2\r\nConnection: close\r\n\r\n{}
        """

    @Test("sends method, path, token and body, and takes the answer apart")
    func request() async throws {
        let server = try StubServer.onLoopback(answering: Self.answer)
        let endpoint = try #require(AdminEndpoint(url: "http://127.0.0.1:\(server.port)"))
        let result = await send(
            AdminRequest(
                method: .post, url: endpoint.url(["v1", "a/b"], query: [("topic", "x y")]),
                token: "secret", body: [1, 0, 255]),
            to: endpoint)
        #expect(
            try result.get()
                == AdminResponse(
                    status: 404, mediaType: "application/problem+json", body: Array("{}".utf8)))
        let request = server.request
        let head = String(decoding: request.prefix(while: { $0 != 1 }), as: UTF8.self).lowercased()
        #expect(head.hasPrefix("post /v1/a%2fb?topic=x%20y http/1.1\r\n"))
        #expect(head.contains("\r\nauthorization: bearer secret\r\n"))
        #expect(head.contains("\r\nhost: 127.0.0.1:\(server.port)\r\n"))
        #expect(head.contains("\r\ncontent-length: 3\r\n"))
        #expect(request.suffix(3) == [1, 0, 255])
    }

    @Test("talks over a Unix socket, with a host that is no path")
    func unixSocket() async throws {
        let folder = try TemporaryFolder()
        let server = try StubServer.onSocket(folder.file("socket"), answering: Self.answer)
        let endpoint = AdminEndpoint.unixSocket(path: folder.file("socket"))
        let result = await send(
            AdminRequest(method: .get, url: endpoint.url(["v1", "status"]), token: nil, body: nil),
            to: endpoint)
        #expect(try result.get().status == 404)
        let head = String(decoding: server.request, as: UTF8.self).lowercased()
        #expect(head.hasPrefix("get /v1/status http/1.1\r\n"))
        #expect(head.contains("\r\nhost: localhost\r\n"))
        #expect(!head.contains("authorization"))
    }

    @Test("does not follow a redirection, which would carry the token elsewhere")
    func redirection() async throws {
        let server = try StubServer.onLoopback(
            answering: """
                HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\
                Connection: close\r\n\r\n
                """)
        let endpoint = try #require(AdminEndpoint(url: "http://127.0.0.1:\(server.port)"))
        let result = await send(
            AdminRequest(method: .get, url: endpoint.url(["x"]), token: "t", body: nil),
            to: endpoint)
        #expect(try result.get().status == 302)
    }

    @Test("a port without a listener is reported with advice")
    func refused() async throws {
        let port = try StubServer.unusedPort()
        let endpoint = try #require(AdminEndpoint(url: "http://127.0.0.1:\(port)"))
        let result = await send(
            AdminRequest(method: .get, url: endpoint.url(["x"]), token: nil, body: nil),
            to: endpoint)
        let failure = CommandFailure(
            .unreachable,
            """
            cannot reach the broker at http://127.0.0.1:\(port): connection refused \
            (ECONNREFUSED). Nothing listens there: start hermesd, or name its HTTP address with \
            --url (its log says it at the start).
            """)
        #expect(result == .failure(failure))
    }

    @Test("a Unix socket that is not there is named with a cure")
    func missingSocket() async throws {
        let endpoint = AdminEndpoint.unixSocket(path: "/nonexistent/s\u{1B}")
        let result = await send(
            AdminRequest(method: .get, url: endpoint.url(["x"]), token: nil, body: nil),
            to: endpoint)
        let failure = CommandFailure(
            .unreachable,
            """
            cannot reach the broker at the Unix socket "/nonexistent/s\\u{1B}": no such file or \
            directory (ENOENT). Start hermesd with admin.unix_socket set to this path, or give \
            --url instead.
            """)
        #expect(result == .failure(failure))
    }

    @Test("a server that hangs up is unreachable, not a crash")
    func hangsUp() async throws {
        let server = try StubServer.onLoopback(answering: "")
        let endpoint = try #require(AdminEndpoint(url: "http://127.0.0.1:\(server.port)"))
        let result = await send(
            AdminRequest(method: .get, url: endpoint.url(["x"]), token: nil, body: nil),
            to: endpoint)
        guard case .failure(let failure) = result else {
            Issue.record("an answer out of nothing")
            return
        }
        #expect(failure.status == .unreachable)
        #expect(failure.message.contains("without an answer"))
    }

    @Test("an answer that does not come ends with the timeout")
    func silence() async throws {
        let server = try StubServer.onLoopback(answering: nil)
        let endpoint = try #require(AdminEndpoint(url: "http://127.0.0.1:\(server.port)"))
        let result = await send(
            AdminRequest(method: .get, url: endpoint.url(["x"]), token: nil, body: nil),
            to: endpoint, timeout: .seconds(1))
        guard case .failure(let failure) = result else {
            Issue.record("an answer out of nothing")
            return
        }
        #expect(failure.status == .unreachable)
        #expect(failure.message.contains("within 1 s"))
    }
}

/// Takes one connection, reads one request, answers it with fixed text and closes.
private final class StubServer: Sendable {
    let port: UInt16
    private let listener: CInt
    private let received = Mutex<[UInt8]>([])

    /// The request as received, once the server has answered.
    var request: [UInt8] { received.withLock { $0 } }

    static func onLoopback(answering answer: String?) throws -> StubServer {
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        try #require(listener >= 0)
        let port = try bindToLoopback(listener)
        return try StubServer(listener, port: port, answer: answer)
    }

    static func onSocket(_ path: String, answering answer: String?) throws -> StubServer {
        let listener = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        try #require(listener >= 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0)
        return try StubServer(listener, port: 0, answer: answer)
    }

    /// A port that was free a moment ago.
    static func unusedPort() throws -> UInt16 {
        let probe = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        try #require(probe >= 0)
        defer { close(probe) }
        return try bindToLoopback(probe)
    }

    private init(_ listener: CInt, port: UInt16, answer: String?) throws {
        try #require(listen(listener, 1) == 0)
        self.listener = listener
        self.port = port
        DispatchQueue(label: "stub server").async { [self] in
            serve(answer)
        }
    }

    private static func bindToLoopback(_ descriptor: CInt) throws -> UInt16 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
            }
        }
        try #require(bound)
        return UInt16(bigEndian: address.sin_port)
    }

    private func serve(_ answer: String?) {
        defer { close(listener) }
        var waiting = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, 20_000) == 1 else { return }
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { return }
        defer { close(connection) }
        readRequest(connection)
        guard let answer else {
            // Sends nothing until the client gives up.
            var byte: UInt8 = 0
            _ = read(connection, &byte, 1)
            return
        }
        let bytes = Array(answer.utf8)
        _ = write(connection, bytes, bytes.count)
    }

    /// Reads the head, and as much body as it announces.
    private func readRequest(_ connection: CInt) {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while !Self.isWhole(bytes) {
            let count = read(connection, &chunk, chunk.count)
            guard count > 0 else { break }
            bytes += chunk[..<count]
        }
        received.withLock { $0 = bytes }
    }

    private static func isWhole(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes, as: Unicode.ASCII.self)
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)
        guard let end = lines.firstIndex(of: "") else { return false }
        let head = lines[..<end]
        let length = head.compactMap { line in
            line.lowercased().hasPrefix("content-length: ") ? Int(line.dropFirst(16)) : nil
        }.first
        let headBytes = head.reduce(2) { $0 + $1.utf8.count + 2 }
        return text.unicodeScalars.count >= headBytes + (length ?? 0)
    }
}
