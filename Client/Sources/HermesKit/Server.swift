import HermesClientNIO

extension HermesClient {
    /// The broker's address, and what proves that it is the right one.
    public struct Server: Sendable {
        let host: String
        let port: Int
        let trust: Trust?
        private(set) var webSocket: WebSocketRequest?
        private(set) var proxy: Proxy?

        struct Trust: Sendable {
            let pins: [PublicKeyPin]
            let roots: Roots
            let identity: ClientIdentity?
        }

        private init(_ host: String, _ port: Int, _ trust: Trust?) {
            self.host = host
            self.port = port
            self.trust = trust
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
        ///   - identity: the client's own certificate, for a broker that asks for one.
        /// - Returns: The broker, for ``Configuration``.
        public static func tls(
            _ host: String, port: Int = 8883, pins: [PublicKeyPin], roots: Roots = .system,
            identity: ClientIdentity? = nil
        ) -> Server {
            Server(host, port, Trust(pins: pins, roots: roots, identity: identity))
        }

        /// A broker without TLS: anybody on the way can read and change everything. For tests, and
        /// for a broker on the same machine.
        public static func plain(_ host: String, port: Int = 1883) -> Server {
            Server(host, port, nil)
        }

        /// The same server, reached by WebSocket: `wss` with TLS, `ws` without. For networks that let
        /// nothing else through, and for servers that something of HTTP stands before.
        ///
        /// - Parameters:
        ///   - path: where the broker serves WebSocket, in ASCII, perhaps with a query.
        ///   - headers: more headers of the request, such as `Authorization`. With TLS they leave
        ///     when the broker is found trusted.
        /// - Returns: The server, for ``Configuration``.
        public func overWebSocket(path: String = "/mqtt", headers: [String: String] = [:]) -> Server
        {
            var server = self
            server.webSocket = WebSocketRequest(
                path: path,
                headers: headers.map { WebSocketRequest.Header(name: $0.key, value: $0.value) })
            return server
        }

        /// The same server, reached through a proxy of HTTP, which sees host and port and, with TLS,
        /// nothing else.
        ///
        /// On Apple's systems those that the user or an administrator has set are used without this;
        /// one of the app's own needs iOS 17, macOS 14 or tvOS 17.
        public func through(_ proxy: Proxy) -> Server {
            var server = self
            server.proxy = proxy
            return server
        }

        func dialer() throws -> Dialer {
            try Self.check(host, port)
            if let trust, Set(trust.pins).count < 2 {
                throw HermesClientError.configuration(
                    "\(trust.pins.count) pins are given; two different ones are needed, "
                        + "that of the broker's key and that of the key that will follow it")
            }
            if let objection = webSocket?.objection {
                throw HermesClientError.configuration(objection)
            }
            if let proxy { try Self.check(proxy.host, proxy.port) }
            let endpoint = BrokerEndpoint(
                host: host, port: port,
                trust: trust.map {
                    TLSTrust(
                        rootCertificates: $0.roots.certificates, pins: $0.pins.map(\.bytes),
                        identity: $0.identity?.identity)
                },
                webSocket: webSocket, proxy: proxy?.address)
            do throws(EndpointError) {
                return try Dialer(endpoint)
            } catch {
                throw HermesClientError.configuration(error.reason)
            }
        }

        private static func check(_ host: String, _ port: Int) throws {
            // What is no part of a name would end the line of a request in HTTP.
            guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }),
                1...65_535 ~= port
            else {
                throw HermesClientError.configuration(
                    "\"\(host.visible)\" and port \(port) are no address; "
                        + "a host name and a port of 1 to 65,535 are needed")
            }
        }
    }

    /// A proxy of HTTP that opens connections by the method CONNECT.
    public struct Proxy: Sendable {
        let address: ProxyAddress

        var host: String { address.host }
        var port: Int { address.port }

        /// A proxy that asks nobody who they are.
        public static func http(_ host: String, port: Int = 3_128) -> Proxy {
            Proxy(address: ProxyAddress(host: host, port: port, login: nil))
        }

        /// A proxy with a login, which goes to it unencrypted (Basic, RFC 7617).
        public static func http(
            _ host: String, port: Int = 3_128, userName: String, password: String
        ) -> Proxy {
            Proxy(
                address: ProxyAddress(
                    host: host, port: port,
                    login: ProxyAddress.Login(userName: userName, password: password)))
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
