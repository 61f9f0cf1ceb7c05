import AdminTLS
import NIOSSL

/// The authorities that `hermesctl` trusts over https, and the certificate that it shows.
package struct ClientTLS: Sendable {
    /// The authorities that may have issued the broker's certificate; `nil` for those that this
    /// system trusts.
    private var authorities: [NIOSSLCertificate]?
    private var chain: [NIOSSLCertificate] = []
    private var key: NIOSSLPrivateKey?

    /// Trusts the authorities that this system trusts.
    package init() {}

    /// - Parameters:
    ///   - caFile: PEM file of the authorities that may have issued the broker's certificate, or of
    ///     that very certificate; `nil` for those that this system trusts.
    ///   - certificate: PEM file of the certificate to show; `nil` for none.
    ///   - key: PEM file of its key; given whenever the certificate is.
    /// - Throws: ``CommandFailure`` with ``ExitStatus/localFile`` when a file cannot be used.
    init(caFile: String?, certificate: String?, key: String?) throws(CommandFailure) {
        if let caFile {
            authorities = try Self.take("--ca-file") { () throws(PEMFile.Unusable) in
                try PEMFile.certificates(caFile)
            }
        }
        guard let certificate, let key else { return }
        chain = try Self.take("--client-certificate") { () throws(PEMFile.Unusable) in
            try PEMFile.certificates(certificate)
        }
        self.key = try Self.take("--client-key") { () throws(PEMFile.Unusable) in
            try PEMFile.privateKey(key, isGuarded: false)
        }
    }

    /// The configuration for a connection that checks the broker's certificate and its name.
    var configuration: TLSConfiguration {
        var configuration = TLSConfiguration.toService(trusting: authorities)
        configuration.certificateChain = chain.map { .certificate($0) }
        if let key { configuration.privateKey = .privateKey(key) }
        return configuration
    }

    private static func take<Value>(
        _ option: String, _ read: () throws(PEMFile.Unusable) -> Value
    ) throws(CommandFailure) -> Value {
        do throws(PEMFile.Unusable) {
            return try read()
        } catch {
            throw CommandFailure(.localFile, "\(option): \(error)")
        }
    }
}
