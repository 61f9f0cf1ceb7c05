/// The broker's address, and what makes it trusted.
package struct BrokerEndpoint: Sendable {
    /// A host name or an IP address.
    package var host: String
    /// 1 to 65,535.
    package var port: Int
    /// `nil`: without TLS.
    package var trust: TLSTrust?

    package init(host: String, port: Int, trust: TLSTrust?) {
        self.host = host
        self.port = port
        self.trust = trust
    }
}

/// The broker's certificate must be valid for the host, lead to one of the roots, and hold a key
/// that one of the pins names.
package struct TLSTrust: Sendable {
    /// Root certificates in PEM; `nil` for those of the system.
    package var rootCertificates: [UInt8]?
    /// SHA-256 of public keys (SubjectPublicKeyInfo), 32 bytes each.
    package var pins: [[UInt8]]

    package init(rootCertificates: [UInt8]?, pins: [[UInt8]]) {
        self.rootCertificates = rootCertificates
        self.pins = pins
    }
}

/// The endpoint cannot be used, and why.
package struct EndpointError: Error, Sendable {
    package var reason: String
}
