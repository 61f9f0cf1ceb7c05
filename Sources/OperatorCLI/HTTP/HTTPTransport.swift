import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import PlainText

/// The real transport: HTTP/1.1 on one thread, with a connection for each request.
///
/// A redirection is an answer like any other, because following it would carry the token to a place
/// that the operator did not name. A connection that fails is not tried again.
struct HTTPTransport: AdminTransport {
    /// The largest answer in bytes; more than a page of 1,000 clients with the longest identifiers
    /// needs.
    private static let maximumAnswerBytes = 256 * 1024 * 1024

    private let endpoint: AdminEndpoint
    private let timeout: Duration
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    /// `nil` for an endpoint without TLS.
    private let tls: Result<NIOSSLContext, any Error>?

    /// Connects to nothing yet. `timeout` limits each request with its answer.
    init(endpoint: AdminEndpoint, timeout: Duration, tls: ClientTLS = ClientTLS()) {
        self.endpoint = endpoint
        self.timeout = timeout
        self.tls =
            endpoint.secureAuthority == nil
            ? nil : Result { try NIOSSLContext(configuration: tls.configuration) }
    }

    func send(_ request: AdminRequest) async throws(CommandFailure) -> AdminResponse {
        do {
            let answer = try await exchange(request)
            return AdminResponse(
                status: Int(answer.head.status.code),
                mediaType: answer.head.headers.first(name: "Content-Type").map(Self.mediaType),
                body: answer.body.map { Array($0.readableBytesView) } ?? [])
        } catch let error as NIOHTTPObjectAggregatorError where error == .frameTooLong {
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

    func close() async {
        // Fails only when it was shut down before, which is fine.
        try? await group.shutdownGracefully()
    }

    /// Connects, sends the request and returns the whole answer.
    private func exchange(_ request: AdminRequest) async throws -> NIOHTTPClientResponseFull {
        let eventLoop = group.next()
        let answer = eventLoop.makePromise(of: NIOHTTPClientResponseFull.self)
        let limit = TimeAmount(timeout)
        let timer = eventLoop.scheduleTask(in: limit) { answer.fail(HTTPExchange.Failure.timeout) }
        defer { timer.cancel() }
        let (head, body) = outgoing(request)
        let bootstrap = ClientBootstrap(group: eventLoop)
            // The timer ends the attempt before.
            .connectTimeout(limit + .seconds(1))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try addTLS(to: pipeline)
                    try pipeline.addHTTPClientHandlers()
                    try pipeline.addHandlers(
                        NIOHTTPClientResponseAggregator(maxContentLength: Self.maximumAnswerBytes),
                        HTTPExchange(head: head, body: body, answer: answer))
                }
            }
        let connection =
            switch endpoint {
            case .unixSocket(let path): bootstrap.connect(unixDomainSocketPath: path)
            case .web(let base, _):
                bootstrap.connect(
                    host: AdminEndpoint.authority(of: base).host,
                    port: Int(AdminEndpoint.authority(of: base).port))
            }
        connection.whenFailure { answer.fail($0) }
        defer { connection.whenSuccess { $0.close(promise: nil) } }
        return try await answer.futureResult.get()
    }

    private func addTLS(to pipeline: ChannelPipeline.SynchronousOperations) throws {
        guard let tls, let host = endpoint.secureAuthority?.host else { return }
        // An address is no name to ask for; the certificate is checked against it all the same.
        let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
        try pipeline.addHandler(
            NIOSSLClientHandler(context: tls.get(), serverHostname: isAddress ? nil : host))
    }

    private func outgoing(_ request: AdminRequest) -> (HTTPRequestHead, ByteBuffer?) {
        let rest = request.url.drop { $0 != ":" }.dropFirst("://".count)
        let authority = rest.prefix { $0 != "/" }
        var headers: HTTPHeaders = [
            "User-Agent": "hermesctl", "Accept": "application/json, application/problem+json",
            "Connection": "close",
        ]
        if case .unixSocket = endpoint {
            // The path of a socket is no host name.
            headers.add(name: "Host", value: "localhost")
        } else {
            headers.add(name: "Host", value: String(authority))
        }
        if let token = request.token {
            headers.add(name: "Authorization", value: "Bearer \(token)")
        }
        if request.body != nil {
            headers.add(name: "Content-Type", value: "application/octet-stream")
        }
        if request.body != nil || request.method == .post {
            headers.add(name: "Content-Length", value: "\(request.body?.count ?? 0)")
        }
        let head = HTTPRequestHead(
            version: .http1_1, method: HTTPMethod(rawValue: request.method.rawValue),
            uri: String(rest.dropFirst(authority.count)), headers: headers)
        return (head, request.body.map { ByteBuffer(bytes: $0) })
    }

    private static func mediaType(_ header: String) -> String {
        String(header.prefix { $0 != ";" && $0 != " " }).lowercased()
    }
}

extension HTTPTransport {
    /// The TLS failure behind an error, with its cure; `nil` when TLS is not the cause.
    private func complaint(about error: any Error) async -> String? {
        guard let failure = TLSFailure(error), let authority = endpoint.secureAuthority else {
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
