import NIOSSL

extension TLSConfiguration {
    /// For a connection to a service that has to show a certificate of its name: TLS 1.2 and more,
    /// with these authorities, or those of the system for `nil`.
    package static func toService(trusting authorities: [NIOSSLCertificate]?) -> TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.verifySignatureAlgorithms = SignatureSchemes.taken.map {
            SignatureAlgorithm(rawValue: $0)
        }
        if let authorities { configuration.trustRoots = .certificates(authorities) }
        return configuration
    }
}
