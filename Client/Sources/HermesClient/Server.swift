import HermesClientNIO

extension HermesClient {
    /// The broker's address, and what proves that it is the right one.
    public struct Server: Sendable {
        let host: String
        let port: Int
        let trust: Trust?

        struct Trust: Sendable {
            let pins: [PublicKeyPin]
            let roots: Roots
        }

        /// A broker with TLS 1.2 or 1.3. Its certificate must be valid for `host`, lead to one of
        /// the roots, and hold a key that a pin names.
        ///
        /// - Parameters:
        ///   - host: a host name or an IP address.
        ///   - port: 1 to 65,535.
        ///   - pins: two at least, that of the key in use and that of the key that follows it: with
        ///     one alone, no app in the field could connect after the key is changed.
        ///   - roots: the system's, or your own.
        /// - Returns: The broker, for ``Configuration``.
        public static func tls(
            _ host: String, port: Int = 8883, pins: [PublicKeyPin], roots: Roots = .system
        ) -> Server {
            Server(host: host, port: port, trust: Trust(pins: pins, roots: roots))
        }

        /// A broker without TLS: anybody on the way can read and change everything. For tests, and
        /// for a broker on the same machine.
        public static func plain(_ host: String, port: Int = 1883) -> Server {
            Server(host: host, port: port, trust: nil)
        }

        func dialer() throws -> Dialer {
            guard !host.isEmpty, 1...65_535 ~= port else {
                throw HermesClientError.configuration(
                    "\"\(host)\" and port \(port) are no address; "
                        + "a host name and a port of 1 to 65,535 are needed")
            }
            if let trust, Set(trust.pins).count < 2 {
                throw HermesClientError.configuration(
                    "\(trust.pins.count) pins are given; two different ones are needed, "
                        + "that of the broker's key and that of the key that will follow it")
            }
            let endpoint = BrokerEndpoint(
                host: host, port: port,
                trust: trust.map {
                    TLSTrust(
                        rootCertificates: $0.roots.certificates, pins: $0.pins.map(\.bytes))
                })
            do throws(EndpointError) {
                return try Dialer(endpoint)
            } catch {
                throw HermesClientError.configuration(error.reason)
            }
        }
    }

    /// The certificates that may vouch for the broker's.
    public struct Roots: Sendable {
        let certificates: [UInt8]?

        /// The roots that the system trusts.
        public static let system = Roots(certificates: nil)

        /// Certificates in PEM, and no others.
        public static func pem(_ certificates: [UInt8]) -> Roots {
            Roots(certificates: certificates)
        }
    }

    /// The SHA-256 of a public key (SubjectPublicKeyInfo, RFC 7469, section 2.4).
    public struct PublicKeyPin: Hashable, Sendable {
        let bytes: [UInt8]

        /// - Parameter text: `sha256/` and the Base64 of 32 bytes; the prefix may be left out, as in
        ///   what OpenSSL gives.
        /// - Throws: ``HermesClientError/configuration(_:)``.
        public init(_ text: String) throws {
            guard let bytes = PinText.bytes(text) else {
                throw HermesClientError.configuration(
                    "\"\(text)\" is no pin; \"sha256/\" and the Base64 of 32 bytes are needed")
            }
            self.bytes = bytes
        }
    }
}
