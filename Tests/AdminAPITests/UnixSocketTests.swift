import Glibc
import Testing

@testable import AdminAPI

@Suite("Unix socket of the admin plane")
struct UnixSocketTests {
    @Test("no token is needed, the mode is 0600, and a stop removes the file")
    func serves() async throws {
        let directory = try makeTemporaryDirectory()
        defer { removeDirectory(directory) }
        let path = directory + "/admin.sock"
        try await TestServer.run(with: .init { $0.unixSocketPath = path }) { server in
            #expect(server.endpoints.unixSocketPath == path)
            var status = stat()
            #expect(lstat(path, &status) == 0)
            #expect(status.st_mode & S_IFMT == S_IFSOCK)
            #expect(status.st_mode & 0o7777 == 0o600)

            let connection = try RawConnection(unixPath: path)
            try connection.send("GET /v1/status HTTP/1.1\r\nHost: any.name\r\n\r\n")
            #expect(try connection.readResponse().status == 200)
            // TCP still needs the token.
            #expect(try server.request("GET", "/v1/status", token: nil).status == 401)
        }
        #expect(rmdir(directory) == 0, "the server left files behind")
    }

    @Test("the log names its callers unix")
    func peer() async throws {
        let directory = try makeTemporaryDirectory()
        defer { removeDirectory(directory) }
        let path = directory + "/admin.sock"
        let log = CapturedLog()
        try await TestServer.run(
            with: .init { $0.unixSocketPath = path }, logger: log.logger
        ) { _ in
            let connection = try RawConnection(unixPath: path)
            try connection.send(
                "GET /v1/status HTTP/1.1\r\nHost: h\r\nOrigin: http://other.example\r\n\r\n")
            #expect(try connection.readResponse().status == 403)
        }
        let lines = log.lines(of: "Admin request refused")
        #expect(lines.map { $0.metadata["admin.peer"] } == ["unix"])
    }

    @Test("a socket without a listener is replaced")
    func stale() async throws {
        let directory = try makeTemporaryDirectory()
        defer { removeDirectory(directory) }
        let path = directory + "/admin.sock"
        close(try boundSocket(path))
        try await TestServer.run(with: .init { $0.unixSocketPath = path }) { _ in
            let connection = try RawConnection(unixPath: path)
            try connection.send("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try connection.readResponse().status == 200)
        }
    }

    @Test("a socket in use, a file and a missing directory are refused, and left alone")
    func refused() async throws {
        let directory = try makeTemporaryDirectory()
        defer { removeDirectory(directory) }
        let busy = directory + "/busy.sock"
        let listener = try boundSocket(busy)
        defer { close(listener) }
        #expect(listen(listener, 5) == 0)
        let file = directory + "/file"
        close(open(file, O_CREAT | O_WRONLY, 0o600))
        for path in [
            busy, file, directory + "/missing/admin.sock",
            "/tmp/" + String(repeating: "x", count: 110),
        ] {
            let error = await #expect(throws: AdminServerError.self, "\(path)") {
                try await TestServer.run(with: .init { $0.unixSocketPath = path }) { _ in }
            }
            #expect(error?.description.contains(path) == true)
        }
        #expect(access(busy, F_OK) == 0)
        #expect(access(file, F_OK) == 0)
    }

    @Test("a port in use is refused with its address")
    func portInUse() async throws {
        try await TestServer.run { server in
            let port = server.endpoints.port
            let error = await #expect(throws: AdminServerError.self) {
                try await TestServer.run(with: .init { $0.port = port }) { _ in }
            }
            #expect(error?.description.contains("127.0.0.1:\(port)") == true)
            let response = try server.request("GET", "/healthz")
            #expect(response.status == 200)
        }
    }

    @Test("when the port is in use, no socket is left behind")
    func portInUseWithSocket() async throws {
        let directory = try makeTemporaryDirectory()
        defer { removeDirectory(directory) }
        try await TestServer.run { server in
            let port = server.endpoints.port
            await #expect(throws: AdminServerError.self) {
                try await TestServer.run(
                    with: .init {
                        $0.port = port
                        $0.unixSocketPath = directory + "/admin.sock"
                    }
                ) { _ in }
            }
        }
        #expect(rmdir(directory) == 0, "the server left files behind")
    }

    private func boundSocket(_ path: String) throws -> CInt {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        try #require(descriptor >= 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(result == 0)
        return descriptor
    }
}
