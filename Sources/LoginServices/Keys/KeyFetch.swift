import AdminTLS
import AsyncHTTPClient
import Logins
import NIOCore
import NIOPosix
import NIOSSL
import PlainText
import SystemFiles

/// One attempt to fetch keys. The text of a failure is a clause.
protocol KeyFetching: Sendable {
    func fetch() async -> Result<[UInt8], KeyFetchFailure>
    func close()
}

/// The reason why no keys came.
struct KeyFetchFailure: Error, Equatable {
    let reason: String
}

/// Fetches keys by AsyncHTTPClient, on one thread of its own.
///
/// Redirections are not followed, since they could lead to a place that the operator did not name.
/// No proxy is used. At most ``KeySet/longestDocument`` bytes are read.
final class KeyFetch: KeyFetching {
    private let source: KeyURL
    private let tls: TLSConfiguration
    private let group: MultiThreadedEventLoopGroup
    private let client: HTTPClient

    /// Connects to nothing yet.
    init(_ source: KeyURL, authorities: KeyAuthorities?) {
        self.source = source
        tls = .toService(trusting: authorities?.certificates)
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var configuration = HTTPClient.Configuration()
        configuration.redirectConfiguration = .disallow
        configuration.httpVersion = .http1Only
        configuration.timeout.connect = TimeAmount(source.timeout)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 1
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
    }

    func fetch() async -> Result<[UInt8], KeyFetchFailure> {
        var request = HTTPClientRequest(url: source.url)
        request.tlsConfiguration = tls
        request.headers.add(name: "Accept", value: "application/jwk-set+json, application/json")
        do {
            let deadline = NIODeadline.now() + TimeAmount(source.timeout)
            let response = try await client.execute(request, deadline: deadline)
            guard response.status == .ok else {
                return .failure(
                    KeyFetchFailure(reason: "the answer has status \(response.status.code)"))
            }
            return try await read(response.body)
        } catch {
            return .failure(KeyFetchFailure(reason: reason(of: error)))
        }
    }

    func close() {
        // Ending an attempt to connect can take until its timeout, and a shutdown does not wait.
        Task.detached { [client, group] in
            try? await client.shutdown()
            try? await group.shutdownGracefully()
        }
    }

    /// Reads an answer within the timeout, which a body that trickles would exceed.
    private func read(
        _ body: HTTPClientResponse.Body
    ) async throws -> Result<[UInt8], KeyFetchFailure> {
        try await withThrowingTaskGroup(of: [UInt8]?.self) { tasks in
            tasks.addTask {
                Array(buffer: try await body.collect(upTo: KeySet.longestDocument))
            }
            tasks.addTask { [source] in
                try await Task.sleep(for: source.timeout)
                return nil
            }
            defer { tasks.cancelAll() }
            guard let first = try await tasks.next(), let bytes = first else {
                return .failure(
                    KeyFetchFailure(reason: "the answer does not end within \(source.timeout)"))
            }
            return .success(bytes)
        }
    }

    // MARK: Words

    private func reason(of error: any Error) -> String {
        switch error {
        case let error as HTTPClientError: reason(of: error)
        case is NIOTooManyBytesError:
            "the answer is longer than \(KeySet.longestDocument) bytes"
        default:
            ServiceConnectionFailure.reason(of: error)
                ?? VisibleText.escaped("\(error)", limit: 200)
        }
    }

    private func reason(of error: HTTPClientError) -> String {
        switch error {
        case .deadlineExceeded, .connectTimeout, .readTimeout, .writeTimeout,
            .getConnectionFromPoolTimeout, .tlsHandshakeTimeout:
            "no answer within \(source.timeout)"
        case .remoteConnectionClosed: "the service closed the connection without an answer"
        default: VisibleText.escaped(error.description, limit: 200)
        }
    }
}
