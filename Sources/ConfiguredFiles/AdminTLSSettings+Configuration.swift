import AdminTLS
import OperatorConfiguration

extension AdminTLSSettings {
    /// The TLS part of the HTTP API's configuration; `nil` when it speaks plain HTTP.
    package init?(_ tls: HermesConfiguration.Admin.TLS) {
        guard let certificate = tls.certificate, let key = tls.key else { return nil }
        self.init(certificate: certificate, key: key)
        minimumVersion =
            switch tls.minimumVersion {
            case .tls12: .tls12
            case .tls13: .tls13
            }
        clientCAFile = tls.clientCAFile
    }
}
