import AsyncHTTPClient
import Glibc
import NIOCore
import NIOPosix

/// Sends requests by AsyncHTTPClient, on one thread of its own.
///
/// Redirections are not followed, since they could lead the events to a place that the operator did
/// not name. No proxy is used.
final class HTTPWebhookTransport: WebhookTransport {
    /// The most of an answer's body that is read, so that the connection can be used again.
    private static let mostAnswerBytes = 64 << 10

    private let timeout: Duration
    private let group: MultiThreadedEventLoopGroup
    private let client: HTTPClient

    /// Connects to nothing yet.
    init(_ settings: WebhookSettings, connections: Int = 1) {
        timeout = settings.timeout
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var configuration = HTTPClient.Configuration()
        configuration.redirectConfiguration = .disallow
        configuration.httpVersion = .http1Only
        configuration.timeout.connect = TimeAmount(settings.timeout)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connections
        // The sender repeats a failed attempt, with pauses.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
    }

    func send(_ request: WebhookRequest, _ files: WebhookFiles) async -> WebhookReply {
        var outgoing = HTTPClientRequest(url: request.url)
        outgoing.method = .POST
        outgoing.tlsConfiguration = files.tls
        for header in request.headers {
            outgoing.headers.add(name: header.name, value: header.value)
        }
        outgoing.body = .bytes(ByteBuffer(bytes: request.body))
        do {
            let deadline = NIODeadline.now() + TimeAmount(timeout)
            let response = try await client.execute(outgoing, deadline: deadline)
            await finish(response.body)
            return WebhookReply(
                status: Int(response.status.code),
                retryAfter: response.headers.first(name: "Retry-After"),
                date: response.headers.first(name: "Date"), now: Int64(time(nil)))
        } catch {
            return .noAnswer(WebhookFailure.reason(of: error, timeout: timeout))
        }
    }

    func close() {
        // Ending an attempt to connect can take until its timeout, and a shutdown does not wait.
        Task.detached { [client, group] in
            try? await client.shutdown()
            try? await group.shutdownGracefully()
        }
    }

    /// Reads the rest of an answer, which has said all with its status. One that is longer, or that
    /// takes longer than an answer may, costs the connection.
    private func finish(_ body: HTTPClientResponse.Body) async {
        await withTaskGroup { tasks in
            tasks.addTask { _ = try? await body.collect(upTo: Self.mostAnswerBytes) }
            tasks.addTask { [timeout] in try? await Task.sleep(for: timeout) }
            await tasks.next()
            tasks.cancelAll()
        }
    }
}
