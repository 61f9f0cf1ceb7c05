#if !canImport(Network)
    import NIOCore
    import NIOPosix
    import NIOSSL

    /// Opens connections to one broker, with sockets and BoringSSL.
    package struct Dialer: Sendable {
        private let endpoint: BrokerEndpoint
        private let context: NIOSSLContext?

        package init(_ endpoint: BrokerEndpoint) throws(EndpointError) {
            self.endpoint = endpoint
            context = try endpoint.trust.map { trust throws(EndpointError) in
                try Self.makeContext(trust, behindProxy: endpoint.proxy != nil)
            }
        }

        /// The threads that clients share unless they are given others.
        package static var sharedGroup: any EventLoopGroup {
            MultiThreadedEventLoopGroup.singleton
        }

        func connect(
            on loop: any EventLoop, for connection: NIOLoopBound<TransportConnection>
        ) -> EventLoopFuture<any Channel> {
            ClientBootstrap(group: loop)
                .connectTimeout(TransportConnection.openTime)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try connection.value.attempts(channel)
                        try addHandlers(to: channel, for: connection.value)
                    }
                }
                .connect(
                    host: endpoint.proxy?.host ?? endpoint.host,
                    port: endpoint.proxy?.port ?? endpoint.port)
        }

        /// Proxy, TLS, WebSocket, packets: each tells the next one when it may begin.
        private func addHandlers(
            to channel: any Channel, for connection: TransportConnection
        ) throws {
            let pipeline = channel.pipeline.syncOperations
            if let proxy = endpoint.proxy {
                try pipeline.addHandler(ProxyHandler(proxy, to: endpoint.authority))
            }
            if let context, let trust = endpoint.trust {
                let tls = try NIOSSLClientHandler(
                    context: context, serverHostname: endpoint.isHostName ? endpoint.host : nil)
                try pipeline.addHandlers(
                    tls,
                    TrustHandler { [endpoint] in
                        endpoint.objection(to: tls.peerCertificate, trust)
                    })
            }
            if let webSocket = endpoint.webSocket {
                try pipeline.addHandler(
                    WebSocketHandler(
                        webSocket, host: endpoint.hostHeader, asksWhenActive: context == nil))
            }
            try pipeline.addHandler(
                PacketHandler(
                    for: connection,
                    opensWhenActive: context == nil && endpoint.webSocket == nil))
        }

        private static func makeContext(
            _ trust: TLSTrust, behindProxy: Bool
        ) throws(EndpointError) -> NIOSSLContext {
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.minimumTLSVersion = .tlsv12
            configuration.shutdownTimeout = TransportConnection.closeTime
            // NIOSSL would compare the certificate with the proxy's address; see `objection`.
            if behindProxy { configuration.certificateVerification = .noHostnameVerification }
            if let pem = trust.rootCertificates {
                configuration.trustRoots = .certificates(try certificates(pem, "root certificates"))
            }
            if let identity = trust.identity { try add(identity, to: &configuration) }
            do {
                return try NIOSSLContext(configuration: configuration)
            } catch {
                throw EndpointError(
                    reason:
                        "the certificates cannot be used; one of the client belongs to its key, "
                        + "and all of them are in PEM or PKCS #12: \(error)")
            }
        }

        private static func add(
            _ identity: TLSIdentity, to configuration: inout TLSConfiguration
        ) throws(EndpointError) {
            switch identity {
            case .pem(let pem, let key):
                configuration.certificateChain = try certificates(pem, "client's certificates")
                    .map { .certificate($0) }
                do {
                    configuration.privateKey = .privateKey(
                        try NIOSSLPrivateKey(bytes: key, format: .pem))
                } catch {
                    throw EndpointError(
                        reason:
                            "the client's key cannot be read as PEM without a password: \(error)")
                }
            case .pkcs12(let file, let password):
                do {
                    let bundle = try NIOSSLPKCS12Bundle(
                        buffer: file, passphrase: Array(password.utf8))
                    configuration.certificateChain = bundle.certificateChain
                        .map { .certificate($0) }
                    configuration.privateKey = .privateKey(bundle.privateKey)
                } catch {
                    throw EndpointError(
                        reason: "the client's certificate is no PKCS #12, or its password is "
                            + "another one: \(error)")
                }
            }
        }

        private static func certificates(
            _ pem: [UInt8], _ name: String
        ) throws(EndpointError) -> [NIOSSLCertificate] {
            let certificates: [NIOSSLCertificate]
            do {
                certificates = try NIOSSLCertificate.fromPEMBytes(pem)
            } catch {
                throw EndpointError(reason: "the \(name) cannot be read as PEM: \(error)")
            }
            guard !certificates.isEmpty else {
                throw EndpointError(reason: "the \(name) hold none in PEM")
            }
            return certificates
        }
    }

    extension BrokerEndpoint {
        /// False for an IP address, which has no place in the handshake (RFC 6066, section 3); the
        /// certificate is then compared with the address.
        fileprivate var isHostName: Bool {
            (try? SocketAddress(ipAddress: host, port: port)) == nil
        }

        /// Why the broker is not trusted; `nil` if it is. The chain is NIOSSL's to judge, and so is
        /// the host unless a proxy stands between.
        fileprivate func objection(to certificate: NIOSSLCertificate?, _ trust: TLSTrust) -> String?
        {
            guard let certificate, let key = try? certificate.extractPublicKey().toSPKIBytes()
            else { return "the broker's certificate holds no key that can be read" }
            if proxy != nil, !CertificateNames.match(CertificateNames.of(certificate), host: host) {
                return "the certificate is for another host: none of its names is \(host)"
            }
            let pin = SHA256.hash(key)
            return trust.pins.contains(pin) ? nil : PinText.objection(to: pin)
        }
    }
#endif
