import AsyncHTTPClient
import NIOCore
import NIOPosix
import NIOSSL
import PlainText
import SystemFiles

/// The real transport: AsyncHTTPClient on one thread of its own.
struct HTTPTransport: AdminTransport {
    /// The largest answer in bytes; more than a page of 1,000 clients with the longest identifiers
    /// needs.
    private static let maximumAnswerBytes = 256 * 1024 * 1024

    private let endpoint: AdminEndpoint
    private let timeout: Duration
    private let group: MultiThreadedEventLoopGroup
    private let client: HTTPClient

    /// Connects to nothing yet. `timeout` limits each request with its answer.
    init(endpoint: AdminEndpoint, timeout: Duration, tls: ClientTLS = ClientTLS()) {
        self.endpoint = endpoint
        self.timeout = timeout
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var configuration = HTTPClient.Configuration()
        // A redirection could carry the token to a place that the operator did not name.
        configuration.redirectConfiguration = .disallow
        configuration.httpVersion = .http1Only
        configuration.tlsConfiguration = tls.configuration
        // A refused connection is an answer; the operator decides whether to try again.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
    }

    func send(_ request: AdminRequest) async throws(CommandFailure) -> AdminResponse {
        do {
            let deadline = NIODeadline.now() + TimeAmount(timeout)
            let response = try await client.execute(outgoing(request), deadline: deadline)
            let body = try await response.body.collect(upTo: Self.maximumAnswerBytes)
            return AdminResponse(
                status: Int(response.status.code),
                mediaType: response.headers.first(name: "Content-Type").map(Self.mediaType),
                body: Array(body.readableBytesView))
        } catch is NIOTooManyBytesError {
            throw CommandFailure(
                .unexpectedAnswer,
                """
                \(endpoint) answered more than \(Self.maximumAnswerBytes) bytes. \
                Check that it is a Hermes broker.
                """)
        } catch {
            if let complaint = await complaint(about: error) {
                throw CommandFailure(.unreachable, complaint)
            }
            throw ConnectionFailure(error, endpoint: endpoint, timeout: timeout).failure
        }
    }

    func stream(
        _ request: AdminRequest, from descriptor: CInt, named name: String,
        take: (ArraySlice<UInt8>) throws(CommandFailure) -> Void
    ) async throws(CommandFailure) -> AdminResponse {
        var outgoing = outgoing(request)
        outgoing.headers.replaceOrAdd(name: "Content-Type", value: "application/x-ndjson")
        outgoing.body = .stream(
            DescriptorParts(descriptor: descriptor, name: name), length: .unknown)
        // A stream lasts as long as its source; the broker ends one that stands still.
        return try await answer(to: outgoing, take)
    }

    func follow(
        _ request: AdminRequest, take: (ArraySlice<UInt8>) throws(CommandFailure) -> Void
    ) async throws(CommandFailure) -> AdminResponse {
        try await answer(to: outgoing(request), take)
    }

    /// Sends a request, and gives the body of a successful answer away in parts, however long it
    /// goes on.
    private func answer(
        to outgoing: HTTPClientRequest,
        _ take: (ArraySlice<UInt8>) throws(CommandFailure) -> Void
    ) async throws(CommandFailure) -> AdminResponse {
        do {
            let response = try await client.execute(outgoing, deadline: .distantFuture)
            var answer = AdminResponse(
                status: Int(response.status.code),
                mediaType: response.headers.first(name: "Content-Type").map(Self.mediaType),
                body: [])
            for try await part in response.body {
                let bytes = Array(part.readableBytesView)
                if (200..<300).contains(answer.status) {
                    try take(bytes[...])
                } else if answer.body.count < Self.maximumAnswerBytes {
                    answer.body += bytes
                }
            }
            return answer
        } catch let failure as CommandFailure {
            throw failure
        } catch let error as SystemError {
            throw CommandFailure(.localFile, error.complaint)
        } catch {
            if let complaint = await complaint(about: error) {
                throw CommandFailure(.unreachable, complaint)
            }
            throw ConnectionFailure(error, endpoint: endpoint, timeout: timeout).failure
        }
    }

    func close() async {
        // Both fail only when they were shut down before, which is fine.
        try? await client.shutdown()
        try? await group.shutdownGracefully()
    }

    private func outgoing(_ request: AdminRequest) -> HTTPClientRequest {
        var outgoing = HTTPClientRequest(url: request.url)
        outgoing.method = .init(rawValue: request.method.rawValue)
        outgoing.headers.add(name: "User-Agent", value: "hermesctl")
        outgoing.headers.add(name: "Accept", value: "application/json, application/problem+json")
        if case .unixSocket = endpoint {
            // The path of a socket is no host name.
            outgoing.headers.add(name: "Host", value: "localhost")
        }
        if let token = request.token {
            outgoing.headers.add(name: "Authorization", value: "Bearer \(token)")
        }
        if let key = request.idempotencyKey {
            outgoing.headers.add(name: "Idempotency-Key", value: key)
        }
        if let tag = request.ifMatch { outgoing.headers.add(name: "If-Match", value: tag) }
        if let body = request.body {
            outgoing.headers.add(name: "Content-Type", value: request.contentType)
            outgoing.body = .bytes(ByteBuffer(bytes: body))
        }
        return outgoing
    }

    private static func mediaType(_ header: String) -> String {
        Substring(header.utf8.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") })
            .lowercased()
    }
}

extension HTTPTransport {
    /// The TLS failure behind an error, with its cure; `nil` when TLS is not the cause.
    private func complaint(about error: any Error) async -> String? {
        guard let failure = ClientTLSFailure(error), let authority = endpoint.secureAuthority else {
            return nil
        }
        switch failure {
        case .untrusted, .wrongName:
            let chain = await CertificateProbe.chain(
                host: authority.host, port: authority.port, on: group,
                within: TimeAmount(min(timeout, .seconds(10))))
            let complaint = CertificateComplaint(
                chain: chain, host: authority.host, endpoint: endpoint, now: .now())
            return "cannot trust the broker: "
                + (failure == .untrusted ? complaint.aboutTrust : complaint.aboutName)
        case .notTLS:
            return """
                \(endpoint) does not speak TLS. Write http:// in --url for a broker without \
                admin.tls, and check that it is its HTTP port.
                """
        case .wantsCertificate:
            return """
                \(endpoint) lets nobody in without a certificate that it knows \
                (admin.tls.client_ca_file). Give --client-certificate and --client-key.
                """
        case .refused:
            return """
                \(endpoint) refuses the TLS handshake without a reason. Either it lets nobody in \
                without a certificate that it knows (admin.tls.client_ca_file): give \
                --client-certificate and --client-key; or there is no version, cipher or kind of \
                key that both know. The log of hermesd says which ("Admin TLS handshake failed").
                """
        case .other(let reason):
            return """
                the TLS handshake with \(endpoint) failed (\(reason)). Check that it is the \
                broker's HTTP port, and look into the log of hermesd.
                """
        }
    }
}
