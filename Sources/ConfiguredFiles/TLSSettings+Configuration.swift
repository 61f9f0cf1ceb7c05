import OperatorConfiguration
import SystemFiles
import TLS

extension TLSSettings {
    /// The TLS part of a listener's configuration; `nil` when it serves plain TCP.
    package init?(_ tls: HermesConfiguration.TLS, listener: Int) {
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

extension HermesConfiguration {
    /// The TLS part of each listener, in order; `nil` for one that serves plain TCP.
    package var listenersTLS: [TLSSettings?] {
        listeners.enumerated().map { TLSSettings($1.tls, listener: $0) }
    }
}

extension TLSProblems: FileRefusal {
    package var isTransient: Bool { problems.allSatisfy(\.isTransient) }
}
