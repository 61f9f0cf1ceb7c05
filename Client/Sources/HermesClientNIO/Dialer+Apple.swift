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

        package init(_ endpoint: BrokerEndpoint) throws(EndpointError) {
            self.endpoint = endpoint
            roots = try Self.certificates(inPEM: endpoint.trust?.rootCertificates)
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
                        try channel.pipeline.syncOperations.addHandler(
                            PacketHandler(for: connection.value))
                    }
                }
            if let trust = endpoint.trust {
                let options = options(trust) { text in
                    // Before the handshake's failure, which the loop hears of next.
                    loop.execute { connection.value.object(text) }
                }
                bootstrap = bootstrap.tlsOptions(options)
            }
            return bootstrap.connect(host: endpoint.host, port: endpoint.port)
        }

        private func options(
            _ trust: TLSTrust, objects: @escaping @Sendable (String) -> Void
        ) -> NWProtocolTLS.Options {
            let options = NWProtocolTLS.Options()
            let security = options.securityProtocolOptions
            sec_protocol_options_set_min_tls_protocol_version(security, .TLSv12)
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

    /// The SubjectPublicKeyInfo of a certificate (RFC 5280, section 4.1): the system gives the bare
    /// key, and the part before it says of which kind it is.
    enum PublicKeyInfo {
        /// `nil` for kinds of keys that brokers do not use: RSA of 2,048 to 4,096 bits, P-256 and
        /// P-384 are known.
        static func bytes(of certificate: SecCertificate) -> Data? {
            guard let key = SecCertificateCopyKey(certificate),
                let attributes = SecKeyCopyAttributes(key) as? [CFString: Any],
                let type = attributes[kSecAttrKeyType] as? String,
                let bits = attributes[kSecAttrKeySizeInBits] as? Int,
                let bare = SecKeyCopyExternalRepresentation(key, nil) as Data?
            else { return nil }
            if type == kSecAttrKeyTypeRSA as String { return rsa(bare) }
            guard type == kSecAttrKeyTypeECSECPrimeRandom as String else { return nil }
            switch bits {
            case 256: return sequence(sequence(ecPublicKey + prime256) + bitString(bare))
            case 384: return sequence(sequence(ecPublicKey + secp384) + bitString(bare))
            default: return nil
            }
        }

        // Object identifiers in DER (RFC 5480, RFC 3279).
        private static let ecPublicKey = Data([6, 7, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1])
        private static let prime256 = Data([6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7])
        private static let secp384 = Data([6, 5, 0x2B, 0x81, 4, 0, 0x22])
        private static let rsaEncryption = Data(
            [6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1, 5, 0])

        private static func rsa(_ bare: Data) -> Data {
            sequence(sequence(rsaEncryption) + bitString(bare))
        }

        private static func sequence(_ content: Data) -> Data { element(0x30, content) }

        private static func bitString(_ content: Data) -> Data {
            element(3, Data([0]) + content)
        }

        private static func element(_ tag: UInt8, _ content: Data) -> Data {
            let count = content.count
            let length: [UInt8] =
                switch count {
                case ..<128: [UInt8(count)]
                case ..<256: [0x81, UInt8(count)]
                default: [0x82, UInt8(count >> 8), UInt8(count & 0xFF)]
                }
            return Data([tag] + length) + content
        }
    }
#endif
