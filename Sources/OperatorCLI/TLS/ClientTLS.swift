import AdminTLS
import Credentials
import NIOSSL
import PlainText
import SystemFiles

/// The authorities that `hermesctl` trusts over https, and the certificate that it shows.
package struct ClientTLS: Sendable {
    /// The largest file in bytes; a bundle of all public authorities is smaller.
    private static let mostBytes = 4 << 20

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
            authorities = try Self.certificates(caFile, option: "--ca-file")
        }
        guard let certificate, let key else { return }
        chain = try Self.certificates(certificate, option: "--client-certificate")
        guard
            let read = try? NIOSSLPrivateKey(
                bytes: try Self.bytes(key, option: "--client-key"), format: .pem)
        else {
            throw CommandFailure(
                .localFile,
                """
                --client-key: "\(VisibleText.escaped(key))" holds no private key in PEM that can \
                be read. Give one without a passphrase.
                """)
        }
        self.key = read
    }

    /// The configuration for a connection that checks the broker's certificate and its name.
    var configuration: TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.verifySignatureAlgorithms = SignatureSchemes.taken.map {
            SignatureAlgorithm(rawValue: $0)
        }
        if let authorities { configuration.trustRoots = .certificates(authorities) }
        configuration.certificateChain = chain.map { .certificate($0) }
        if let key { configuration.privateKey = .privateKey(key) }
        return configuration
    }

    private static func certificates(
        _ path: String, option: String
    ) throws(CommandFailure) -> [NIOSSLCertificate] {
        let found = (try? NIOSSLCertificate.fromPEMBytes(try bytes(path, option: option))) ?? []
        guard !found.isEmpty else {
            throw CommandFailure(
                .localFile,
                """
                \(option): "\(VisibleText.escaped(path))" holds no certificate in PEM. Give a file \
                with a part that begins with "-----BEGIN CERTIFICATE-----".
                """)
        }
        return found
    }

    private static func bytes(_ path: String, option: String) throws(CommandFailure) -> [UInt8] {
        do throws(WholeFile.Failure) {
            return try WholeFile(path, maximumByteCount: mostBytes).bytes
        } catch {
            let name = VisibleText.escaped(path)
            let text =
                switch error {
                case .missing: "there is no file \"\(name)\". Correct the path."
                case .notRegularFile: "\"\(name)\" is no regular file. Give a PEM file."
                case .foreignLink(let owner):
                    "\"\(name)\" is a symbolic link of user \(owner) or to a file of theirs. Name the file itself."
                case .tooLarge: "\"\(name)\" is larger than 4 MiB. Give a PEM file."
                case .system(let error): error.complaint
                }
            throw CommandFailure(.localFile, "\(option): \(text)")
        }
    }
}
