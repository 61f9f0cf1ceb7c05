#if canImport(Network)
    import CryptoKit
    import Foundation
    import Network
    import NIOCore
    import NIOTransportServices
    import Security

    /// Opens connections to one broker, with Network.framework: it wakes the radio, and follows VPNs
    /// and proxies of the system.
    package struct Dialer: Sendable {
        private let endpoint: BrokerEndpoint
        private let roots: [Data]
        private let identity: KeychainIdentity?

        package init(_ endpoint: BrokerEndpoint) throws(EndpointError) {
            self.endpoint = endpoint
            roots = try Self.certificates(inPEM: endpoint.trust?.rootCertificates)
            identity = try endpoint.trust?.identity.map { identity throws(EndpointError) in
                try KeychainIdentity(identity)
            }
            if endpoint.proxy != nil {
                guard #available(iOS 17, macOS 14, tvOS 17, *) else {
                    throw EndpointError(
                        reason:
                            "a proxy of the app's own needs iOS 17, macOS 14 or tvOS 17; those of "
                            + "the system are used without being named")
                }
            }
        }

        /// The queues that clients share unless they are given others.
        package static var sharedGroup: any EventLoopGroup { NIOTSEventLoopGroup.singleton }

        func connect(
            on loop: any EventLoop, for connection: NIOLoopBound<TransportConnection>
        ) -> EventLoopFuture<any Channel> {
            var bootstrap = NIOTSConnectionBootstrap(group: loop)
                .connectTimeout(TransportConnection.openTime)
                // A refused connection is a failure at once, not a wait for better times.
                .channelOption(NIOTSChannelOptions.waitForActivity, value: false)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try connection.value.attempts(channel)
                        try addHandlers(to: channel, for: connection.value)
                    }
                }
            if let trust = endpoint.trust {
                let options = options(trust) { text in
                    // Before the handshake's failure, which the loop hears of next.
                    loop.execute { connection.value.object(text) }
                }
                bootstrap = bootstrap.tlsOptions(options)
            }
            if let proxy = endpoint.proxy, #available(iOS 17, macOS 14, tvOS 17, *) {
                bootstrap = bootstrap.configureNWParameters { parameters in
                    parameters.setPrivacyContext(Self.context(proxy))
                }
            }
            return bootstrap.connect(host: endpoint.host, port: endpoint.port)
        }

        /// The channel is active when TLS has found the broker trusted.
        private func addHandlers(
            to channel: any Channel, for connection: TransportConnection
        ) throws {
            let pipeline = channel.pipeline.syncOperations
            if let webSocket = endpoint.webSocket {
                try pipeline.addHandler(
                    WebSocketHandler(webSocket, host: endpoint.hostHeader, asksWhenActive: true))
            }
            try pipeline.addHandler(
                PacketHandler(for: connection, opensWhenActive: endpoint.webSocket == nil))
        }

        @available(iOS 17, macOS 14, tvOS 17, *)
        private static func context(_ proxy: ProxyAddress) -> NWParameters.PrivacyContext {
            let context = NWParameters.PrivacyContext(description: "HermesClient")
            let port = NWEndpoint.Port(rawValue: UInt16(truncatingIfNeeded: proxy.port)) ?? 3_128
            var way = ProxyConfiguration(
                httpCONNECTProxy: .hostPort(host: NWEndpoint.Host(proxy.host), port: port))
            if let login = proxy.login {
                way.applyCredential(username: login.userName, password: login.password)
            }
            context.proxyConfigurations = [way]
            return context
        }

        private func options(
            _ trust: TLSTrust, objects: @escaping @Sendable (String) -> Void
        ) -> NWProtocolTLS.Options {
            let options = NWProtocolTLS.Options()
            let security = options.securityProtocolOptions
            sec_protocol_options_set_min_tls_protocol_version(security, .TLSv12)
            if let identity,
                let local = sec_identity_create_with_certificates(
                    identity.identity, identity.intermediates as CFArray)
            {
                sec_protocol_options_set_local_identity(security, local)
            }
            let (roots, pins) = (roots, trust.pins)
            sec_protocol_options_set_verify_block(
                security,
                { _, secTrust, complete in
                    let trust = sec_trust_copy_ref(secTrust).takeRetainedValue()
                    let objection = Self.objection(to: trust, roots: roots, pins: pins)
                    if let objection { objects(objection) }
                    complete(objection == nil)
                },
                .global())
            return options
        }

        /// Why the broker is not trusted; `nil` if it is. The chain and the host name are the
        /// system's to judge, the key is ours.
        private static func objection(
            to trust: SecTrust, roots: [Data], pins: [[UInt8]]
        ) -> String? {
            let anchors = roots.compactMap { SecCertificateCreateWithData(nil, $0 as CFData) }
            if !anchors.isEmpty {
                SecTrustSetAnchorCertificates(trust, anchors as CFArray)
                SecTrustSetAnchorCertificatesOnly(trust, true)
            }
            guard SecTrustEvaluateWithError(trust, nil) else {
                return "the certificate is for another host, does not lead to a trusted root, or "
                    + "is not valid now"
            }
            guard let chain = SecTrustCopyCertificateChain(trust) as? [SecCertificate],
                let leaf = chain.first,
                let key = PublicKeyInfo.bytes(of: leaf)
            else { return "the broker's certificate holds no key that can be read" }
            let pin = Array(SHA256.hash(data: key))
            return pins.contains(pin) ? nil : PinText.objection(to: pin)
        }

        private static func certificates(
            inPEM pem: [UInt8]?
        ) throws(EndpointError) -> [Data] {
            guard let pem else { return [] }
            let blocks = String(decoding: pem, as: UTF8.self)
                .components(separatedBy: "-----BEGIN CERTIFICATE-----").dropFirst()
            let roots = blocks.compactMap { block in
                block.components(separatedBy: "-----END CERTIFICATE-----").first.flatMap {
                    Data(base64Encoded: $0, options: .ignoreUnknownCharacters)
                }
            }
            guard !roots.isEmpty,
                roots.allSatisfy({ SecCertificateCreateWithData(nil, $0 as CFData) != nil })
            else { throw EndpointError(reason: "the root certificates cannot be read as PEM") }
            return roots
        }
    }
#endif
