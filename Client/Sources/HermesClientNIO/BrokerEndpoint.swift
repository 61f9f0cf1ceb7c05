/// The broker's address, what makes it trusted, and the way to it.
package struct BrokerEndpoint: Sendable {
    /// A host name or an IP address.
    package var host: String
    /// 1 to 65,535.
    package var port: Int
    /// `nil`: without TLS.
    package var trust: TLSTrust?
    /// `nil`: MQTT itself, without frames of WebSocket.
    package var webSocket: WebSocketRequest?
    /// `nil`: none but what the system asks for.
    package var proxy: ProxyAddress?

    package init(
        host: String, port: Int, trust: TLSTrust?, webSocket: WebSocketRequest? = nil,
        proxy: ProxyAddress? = nil
    ) {
        self.host = host
        self.port = port
        self.trust = trust
        self.webSocket = webSocket
        self.proxy = proxy
    }

    /// What a request in HTTP names as its host.
    var hostHeader: String {
        port == (trust == nil ? 80 : 443) ? bracketedHost : authority
    }

    /// Host and port, as a proxy is asked for them.
    var authority: String { "\(bracketedHost):\(port)" }

    /// IPv6 addresses stand in brackets (RFC 3986, section 3.2.2).
    private var bracketedHost: String { host.contains(":") ? "[\(host)]" : host }
}

/// The broker's certificate must be valid for the host, lead to one of the roots, and hold a key
/// that one of the pins names.
package struct TLSTrust: Sendable {
    /// Root certificates in PEM; `nil` for those of the system.
    package var rootCertificates: [UInt8]?
    /// SHA-256 of public keys (SubjectPublicKeyInfo), 32 bytes each.
    package var pins: [[UInt8]]
    /// The client's own certificate, for a broker that asks for one.
    package var identity: TLSIdentity?

    package init(rootCertificates: [UInt8]?, pins: [[UInt8]], identity: TLSIdentity? = nil) {
        self.rootCertificates = rootCertificates
        self.pins = pins
        self.identity = identity
    }
}

/// A proxy that opens connections for its clients by the method CONNECT (RFC 9110, section 9.3.6).
package struct ProxyAddress: Hashable, Sendable {
    package var host: String
    package var port: Int
    /// User name and password, sent as Basic (RFC 7617).
    package var login: Login?

    package struct Login: Hashable, Sendable {
        package var userName: String
        package var password: String

        package init(userName: String, password: String) {
            self.userName = userName
            self.password = password
        }
    }

    package init(host: String, port: Int, login: Login?) {
        self.host = host
        self.port = port
        self.login = login
    }
}

/// The endpoint cannot be used, and why.
package struct EndpointError: Error, Sendable {
    package var reason: String
}
