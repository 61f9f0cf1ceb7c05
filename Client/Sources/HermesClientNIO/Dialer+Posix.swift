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
                try Self.makeContext(trust)
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
                .connect(host: endpoint.host, port: endpoint.port)
        }

        private func addHandlers(
            to channel: any Channel, for connection: TransportConnection
        ) throws {
            let pipeline = channel.pipeline.syncOperations
            guard let context, let trust = endpoint.trust else {
                try pipeline.addHandler(PacketHandler(for: connection))
                return
            }
            let tls = try NIOSSLClientHandler(
                context: context, serverHostname: endpoint.isHostName ? endpoint.host : nil)
            let handler = PacketHandler(for: connection) {
                Self.objection(to: tls.peerCertificate, trust)
            }
            try pipeline.addHandlers(tls, handler)
        }

        private static func objection(
            to certificate: NIOSSLCertificate?, _ trust: TLSTrust
        ) -> String? {
            guard let key = try? certificate?.extractPublicKey().toSPKIBytes() else {
                return "the broker's certificate holds no key that can be read"
            }
            let pin = SHA256.hash(key)
            return trust.pins.contains(pin) ? nil : PinText.objection(to: pin)
        }

        private static func makeContext(_ trust: TLSTrust) throws(EndpointError) -> NIOSSLContext {
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.minimumTLSVersion = .tlsv12
            configuration.shutdownTimeout = TransportConnection.closeTime
            do {
                if let pem = trust.rootCertificates {
                    let roots = try NIOSSLCertificate.fromPEMBytes(pem)
                    guard !roots.isEmpty else {
                        throw EndpointError(reason: "the root certificates hold none in PEM")
                    }
                    configuration.trustRoots = .certificates(roots)
                }
                return try NIOSSLContext(configuration: configuration)
            } catch let error as EndpointError {
                throw error
            } catch {
                throw EndpointError(
                    reason: "the root certificates cannot be read as PEM: \(error)")
            }
        }
    }

    extension BrokerEndpoint {
        /// False for an IP address, which has no place in the handshake (RFC 6066, section 3); the
        /// certificate is then compared with the address.
        var isHostName: Bool { (try? SocketAddress(ipAddress: host, port: port)) == nil }
    }
#endif
