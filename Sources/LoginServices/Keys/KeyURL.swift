import AdminTLS
import NIOSSL
import SystemFiles

/// Where a login service publishes its keys, a JSON Web Key Set, as the operator names it. A token
/// never names such a place.
package struct KeyURL: Sendable {
    package let url: String
    /// PEM file with the authorities that may have issued the service's certificate; `nil` for those
    /// that the system trusts.
    package let caFile: String?
    /// Interval of fetching.
    package let refresh: Duration
    /// Longest time from the beginning of a request to the end of its answer.
    package let timeout: Duration

    package init(
        url: String, caFile: String?, refresh: Duration, timeout: Duration = .seconds(10)
    ) {
        self.url = url
        self.caFile = caFile
        self.refresh = refresh
        self.timeout = timeout
    }

    /// Reads the authorities; `nil` without a file. A caller that checks a configuration needs no
    /// more.
    ///
    /// - Throws: `PEMFile.Unusable`, whose description names the file and the cure.
    @discardableResult
    package func authorities() throws(PEMFile.Unusable) -> KeyAuthorities? {
        guard let caFile else { return nil }
        return KeyAuthorities(certificates: try PEMFile.certificates(caFile))
    }
}

/// The authorities that may have issued a login service's certificate.
package struct KeyAuthorities: Sendable {
    let certificates: [NIOSSLCertificate]
}
