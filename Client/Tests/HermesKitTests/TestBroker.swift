import Foundation
import Testing

/// Debian's mosquitto on a free port of loopback, with a folder of its own; ends with the object.
final class TestBroker {
    struct Failure: Error { let reason: String }

    let port: Int
    let folder: TestFolder
    private let process = Process()

    /// `port` is that of an earlier broker, to come back as it, or 0 for a free one; `lines` are
    /// more lines of the configuration.
    init(port: Int = 0, folder: TestFolder = TestFolder(), _ lines: [String] = []) async throws {
        self.folder = folder
        self.port = port == 0 ? try Self.freePort() : port
        let configuration = """
            listener \(self.port) 127.0.0.1
            allow_anonymous true
            persistence true
            autosave_on_changes true
            autosave_interval 1
            persistence_location \(folder.path)/
            user root
            log_dest none
            \(lines.joined(separator: "\n"))
            """
        let file = folder.path + "/mosquitto.conf"
        try configuration.write(toFile: file, atomically: true, encoding: .utf8)
        process.executableURL = URL(
            fileURLWithPath: ["/usr/sbin/mosquitto", "/opt/homebrew/sbin/mosquitto"]
                .first { FileManager.default.isExecutableFile(atPath: $0) } ?? "mosquitto")
        process.arguments = ["-c", file]
        process.standardError = FileHandle.nullDevice
        try process.run()
        try await wait { Self.answers(self.port) }
    }

    deinit { stop() }

    /// A kill: the child has inherited a mask that holds SIGTERM back.
    func stop() {
        guard process.isRunning else { return }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    static func freePort() throws -> Int {
        try withSocket { socket, address in
            guard bind(socket, address, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 else {
                throw Failure(reason: "no free port")
            }
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            getsockname(socket, address, &length)
            return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                Int(UInt16(bigEndian: $0.pointee.sin_port))
            }
        }
    }

    private static func answers(_ port: Int) -> Bool {
        (try? withSocket(port: port) { socket, address in
            connect(socket, address, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }) ?? false
    }

    private static func withSocket<Value>(
        port: Int = 0, _ body: (Int32, UnsafeMutablePointer<sockaddr>) throws -> Value
    ) throws -> Value {
        #if canImport(Darwin)
            let socket = socket(AF_INET, SOCK_STREAM, 0)
        #else
            let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        guard socket >= 0 else { throw Failure(reason: "no socket") }
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(truncatingIfNeeded: port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { try body(socket, $0) }
        }
    }
}

/// A folder that is removed with the object.
final class TestFolder: Sendable {
    let path: String

    init() {
        path =
            FileManager.default.temporaryDirectory
            .appendingPathComponent("hermes-client-\(UUID().uuidString)").path
        try? FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// Waits for a condition, half a minute at most.
func wait(
    isolation: isolated (any Actor)? = #isolation, _ condition: () async throws -> Bool
) async throws {
    for _ in 0..<3_000 {
        if try await condition() { return }
        try await Task.sleep(nanoseconds: 10_000_000)
    }
    throw TestBroker.Failure(reason: "the condition did not come true within 30 s")
}

/// Runs a program and waits for its end.
func run(_ arguments: String..., in folder: TestFolder) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0, "\(arguments.joined(separator: " ")) failed")
}
