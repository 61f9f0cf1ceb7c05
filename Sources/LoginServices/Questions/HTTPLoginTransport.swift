import AdminTLS
import AsyncHTTPClient
import Logins
import NIOCore
import NIOPosix
import NIOSSL
import PlainText
import Synchronization
import SystemFiles

/// The reason why a question got no answer, a clause.
struct LoginServiceFailure: Error, Equatable {
    let reason: String
    /// The service has answered, though nothing of use: that may be due to the question, and says
    /// nothing of others.
    var isAnswer = false
}

/// Sends one question and brings the document of its answer.
protocol LoginTransport: Sendable {
    func send(
        _ body: [UInt8], _ settings: LoginServiceSettings
    ) async -> Result<[UInt8], LoginServiceFailure>
    func close()
}

/// Sends questions by AsyncHTTPClient, on one thread of its own.
///
/// Redirections are not followed, since they could lead passwords to a place that the operator did
/// not name. No proxy is used. At most ``ServiceAnswer/mostBytes`` are read.
///
/// AsyncHTTPClient fails every request that waits for a connection when one connection cannot be
/// made, though others are on their way. Its own repetition is no way out: it counts the failures
/// of all connections together, so that 30 that are refused at once make it wait for a minute, long
/// after the service has come back. So a question that has not been sent is asked again from here.
final class HTTPLoginTransport: LoginTransport {
    private let group: MultiThreadedEventLoopGroup
    private let client: HTTPClient
    private let files: Mutex<(tls: TLSConfiguration, authorization: String?)>
    private let isClosed = Atomic(false)

    /// Connects to nothing yet. `connections` is the most at a time, whatever a reload says.
    init(_ settings: LoginServiceSettings, _ files: LoginServiceFiles, connections: Int) {
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var configuration = HTTPClient.Configuration()
        configuration.redirectConfiguration = .disallow
        configuration.httpVersion = .http1Only
        // The longest auth.http.timeout: each question's deadline ends its wait before.
        configuration.timeout.connect = .seconds(30)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connections
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
        self.files = Mutex((files.tls, files.authorization))
    }

    /// Takes these files for the next question.
    func use(_ files: LoginServiceFiles) {
        self.files.withLock { $0 = (files.tls, files.authorization) }
    }

    /// How often a question is begun. A service that refuses every connection has failed after half
    /// a second.
    private static let mostAttempts = 4

    func send(
        _ body: [UInt8], _ settings: LoginServiceSettings
    ) async -> Result<[UInt8], LoginServiceFailure> {
        let end = ContinuousClock.now.advanced(by: settings.timeout)
        var attempt = 1
        while true {
            let question = QuestionBody(body)
            let result = await send(question, settings, until: end)
            // Questions that failed together do not come together again.
            let pause = Duration.milliseconds(Int64.random(in: 25...50) << attempt)
            let next = ContinuousClock.now.advanced(by: pause)
            guard case .failure = result, !question.isSent, attempt < Self.mostAttempts,
                next < end, !isClosed.load(ordering: .relaxed)
            else { return result }
            do { try await Task.sleep(until: next, clock: .continuous) } catch { return result }
            attempt += 1
        }
    }

    private func send(
        _ body: QuestionBody, _ settings: LoginServiceSettings,
        until end: ContinuousClock.Instant
    ) async -> Result<[UInt8], LoginServiceFailure> {
        let (tls, authorization) = files.withLock { $0 }
        var request = HTTPClientRequest(url: settings.url)
        request.method = .POST
        request.tlsConfiguration = tls
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "Accept", value: "application/json")
        request.headers.add(name: "User-Agent", value: "hermes")
        if let authorization {
            request.headers.add(name: "Authorization", value: authorization)
        }
        request.body = .stream(body, length: .known(Int64(body.count)))
        let timeout = settings.timeout
        do {
            let deadline = NIODeadline.now() + TimeAmount(ContinuousClock.now.duration(to: end))
            let response = try await client.execute(request, deadline: deadline)
            guard response.status == .ok else {
                // What a service or a balancer in front says that cannot serve now.
                let isOverloaded = [429, 502, 503, 504].contains(response.status.code)
                return .failure(
                    LoginServiceFailure(
                        reason: "the answer has status \(response.status.code)",
                        isAnswer: !isOverloaded))
            }
            return try await read(response.body, until: end, timeout)
        } catch {
            return .failure(LoginServiceFailure(reason: Self.reason(of: error, timeout)))
        }
    }

    /// A start that is refused for another reason uses it for nothing.
    deinit { close() }

    func close() {
        guard !isClosed.exchange(true, ordering: .relaxed) else { return }
        // Ending an attempt to connect can take until its timeout, and a shutdown does not wait.
        Task.detached { [client, group] in
            try? await client.shutdown()
            try? await group.shutdownGracefully()
        }
    }

    /// Reads an answer within the timeout, which a body that trickles would exceed.
    private func read(
        _ body: HTTPClientResponse.Body, until end: ContinuousClock.Instant, _ timeout: Duration
    ) async throws -> Result<[UInt8], LoginServiceFailure> {
        try await withThrowingTaskGroup(of: [UInt8]?.self) { tasks in
            tasks.addTask { Array(buffer: try await body.collect(upTo: ServiceAnswer.mostBytes)) }
            tasks.addTask {
                try await Task.sleep(until: end, clock: .continuous)
                return nil
            }
            defer { tasks.cancelAll() }
            guard let first = try await tasks.next(), let bytes = first else {
                return .failure(
                    LoginServiceFailure(reason: "the answer does not end within \(timeout)"))
            }
            return .success(bytes)
        }
    }

    // MARK: Words

    private static func reason(of error: any Error, _ timeout: Duration) -> String {
        switch error {
        case let error as HTTPClientError: reason(of: error, timeout)
        case is NIOTooManyBytesError:
            "the answer is longer than \(ServiceAnswer.mostBytes) bytes"
        default:
            ServiceConnectionFailure.reason(of: error)
                ?? VisibleText.escaped("\(error)", limit: 200)
        }
    }

    private static func reason(of error: HTTPClientError, _ timeout: Duration) -> String {
        switch error {
        case .deadlineExceeded, .connectTimeout, .readTimeout, .writeTimeout,
            .getConnectionFromPoolTimeout, .tlsHandshakeTimeout:
            "no answer within \(timeout)"
        case .remoteConnectionClosed: "the service closed the connection without an answer"
        default: VisibleText.escaped(error.description, limit: 200)
        }
    }
}
