import OperatorConfiguration
import TLS

extension TLSSettings {
    /// The TLS part of a listener's configuration; `nil` when it serves plain TCP.
    init?(_ tls: HermesConfiguration.TLS, listener: Int) {
        guard tls.isOn else { return nil }
        self.init(
            place: "listeners[\(listener)].tls",
            certificates: zip(tls.certificates, tls.keys).map {
                Pair(certificate: $0, key: $1)
            })
        minimumVersion =
            switch tls.minimumVersion {
            case .tls12: .tls12
            case .tls13: .tls13
            }
        clientCertificates =
            switch tls.clientCertificates {
            case .off: .off
            case .optional: .optional
            case .required: .required
            }
        clientCAFile = tls.clientCAFile
        crlFile = tls.crlFile
        takesUserName = tls.userNameFromCertificate
    }
}
