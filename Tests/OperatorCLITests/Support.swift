import BrokerAPI
import FoundationEssentials
import Glibc
import Synchronization
import SystemFiles
import Testing

@testable import OperatorCLI

/// One run of `hermesctl` with its own environment.
struct Run {
    let exitCode: CInt
    let output: String
    let errors: String
    let requests: [AdminRequest]
}

/// Runs `hermesctl` against prepared answers, one per request.
func run(
    _ arguments: [String], answers: [AdminResponse] = [], columns: Int? = nil,
    environment: [String: String] = ["HERMES_ADMIN_TOKEN": "secret"], input: String = "",
    terminalPath: String = "/nonexistent"
) async throws -> Run {
    let captured = Captured()
    let transport = StubTransport(answers: answers)
    let input = try InputPipe(holding: input)
    let context = CommandContext(
        environment: environment, console: captured.console(columns: columns),
        standardInput: input.descriptor, terminalPath: terminalPath, now: { now },
        makeTransport: { _, _, _ in transport })
    let exitCode = await Hermesctl.run(arguments, in: context)
    return Run(
        exitCode: exitCode, output: captured.output, errors: captured.errors,
        requests: await transport.requests)
}

/// 2025-01-31T08:00:00Z, in milliseconds.
let now: Int64 = 1_738_310_400_000

/// The output of a command.
final class Captured: Sendable {
    private let texts = Mutex((output: [UInt8](), errors: ""))

    var output: String { texts.withLock { String(decoding: $0.output, as: UTF8.self) } }
    var errors: String { texts.withLock { $0.errors } }

    func console(columns: Int?) -> Console {
        Console(
            outputColumns: columns,
            writeOutput: { bytes throws(CommandFailure) in
                self.texts.withLock { $0.output += bytes }
            },
            writeError: { text in self.texts.withLock { $0.errors += text } })
    }
}

/// Answers requests in order; a request without an answer finds the broker unreachable.
actor StubTransport: AdminTransport {
    private(set) var requests: [AdminRequest] = []
    private var answers: [AdminResponse]

    init(answers: [AdminResponse]) {
        self.answers = answers.reversed()
    }

    func send(_ request: AdminRequest) async throws(CommandFailure) -> AdminResponse {
        requests.append(request)
        guard let answer = answers.popLast() else {
            throw CommandFailure(.unreachable, "cannot reach the broker")
        }
        return answer
    }

    nonisolated func stream(
        _ request: AdminRequest, from descriptor: CInt, named name: String,
        take: (ArraySlice<UInt8>) throws(CommandFailure) -> Void
    ) async throws(CommandFailure) -> AdminResponse {
        var request = request
        request.body = []
        while let part = try? OpenFile.readPart(descriptor, name: name), !part.isEmpty {
            request.body? += part
        }
        var answer = try await send(request)
        guard answer.status == 200 else { return answer }
        try take(answer.body[...])
        answer.body = []
        return answer
    }

    nonisolated func follow(
        _ request: AdminRequest, take: (ArraySlice<UInt8>) throws(CommandFailure) -> Void
    ) async throws(CommandFailure) -> AdminResponse {
        var answer = try await send(request)
        guard answer.status == 200 else { return answer }
        try take(answer.body[...])
        answer.body = []
        return answer
    }

    func close() async {}
}

/// A descriptor from which this text can be read.
final class InputPipe {
    let descriptor: CInt

    init(holding text: String) throws {
        var ends: [CInt] = [0, 0]
        try #require(pipe(&ends) == 0)
        let bytes = Array(text.utf8)
        try #require(write(ends[1], bytes, bytes.count) == bytes.count)
        close(ends[1])
        descriptor = ends[0]
    }

    deinit { close(descriptor) }
}

extension AdminResponse {
    /// An answer with status 200 and this value as JSON.
    static func ok(_ value: some Encodable) throws -> AdminResponse {
        AdminResponse(
            status: 200, mediaType: "application/json", body: Array(try JSONEncoder().encode(value))
        )
    }

    static func problem(
        _ status: Int, _ title: String, _ detail: String, fix: String = "Name another."
    ) throws -> AdminResponse {
        let problem = ProblemModel(
            type: "urn:hermes:problem:test", title: title, status: status, detail: detail,
            fix: fix)
        return AdminResponse(
            status: status, mediaType: ProblemModel.contentType,
            body: Array(try JSONEncoder().encode(problem)))
    }
}

extension ClientSummary {
    static func example(
        _ clientID: String, userName: String? = nil, connected: Bool = true, queued: Int = 0
    ) -> ClientSummary {
        ClientSummary(
            clientID: clientID, userName: userName, connected: connected,
            address: connected ? "127.0.0.1:50000" : nil, protocolVersion: "3.1.1",
            cleanSession: false, keepAliveSeconds: 120, sinceMs: now - 200_000, subscriptions: 1,
            inFlight: 2, queued: queued, queuedBytes: queued * 100, dropped: 0)
    }
}

/// A folder for one test, removed with this object.
final class TemporaryFolder {
    let path: String

    init() throws {
        var template = Array("/tmp/hermesctl-tests-XXXXXX".utf8CString)
        path = String(cString: try #require(mkdtemp(&template)))
    }

    deinit {
        for name in [
            "users", "users.lock", "tokens", "tokens.lock", "admin.token", "admin.address",
            "hermes.yaml", "message", "socket", "acl", "certificate", "key",
        ] {
            unlink(file(name))
        }
        rmdir(path)
    }

    func file(_ name: String) -> String { path + "/" + name }

    @discardableResult
    func write(_ text: String, to name: String) throws -> String {
        let stream = try #require(fopen(file(name), "w"))
        let bytes = Array(text.utf8)
        #expect(fwrite(bytes, 1, bytes.count, stream) == bytes.count)
        fclose(stream)
        chmod(file(name), 0o600)
        return file(name)
    }

    func read(_ name: String) throws -> String {
        let bytes = try OpenFile(file(name)).readAll(maximumByteCount: 1 << 20)
        return String(decoding: bytes, as: UTF8.self)
    }
}
