import NIOSSL
import PlainText

/// Reads the files for HTTPS and makes a TLS context of them, or reports everything that is wrong
/// with them.
package struct AdminTLSLoader {
    /// The cipher suites for TLS 1.2, all with forward secrecy and authenticated encryption. Those
    /// of TLS 1.3 are always on.
    private static let cipherSuites: [NIOTLSCipher] = [
        .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ]

    private let settings: AdminTLSSettings
    private var problems: [String] = []
    /// Number of problems that may pass by themselves, such as a lack of descriptors.
    private var transientCount = 0

    /// The result of reading the files.
    package struct Loaded {
        package let context: NIOSSLContext
        /// Time at which the first certificate of the chain expires, in seconds since 1970.
        package let expires: Int64
        /// Time from which all certificates of the chain are valid, in seconds since 1970.
        package let begins: Int64
        /// Time at which the first authority for callers' certificates expires, in seconds since
        /// 1970; `nil` when callers show none.
        package let authoritiesExpire: Int64?
    }

    package static func load(_ settings: AdminTLSSettings) throws(AdminTLSUnusable) -> Loaded {
        var loader = Self(settings)
        let loaded = loader.load()
        guard let loaded else {
            throw AdminTLSUnusable(
                problems: loader.problems,
                isTransient: loader.problems.count == loader.transientCount)
        }
        return loaded
    }

    private init(_ settings: AdminTLSSettings) {
        self.settings = settings
    }

    /// Reads all files; `nil` when there are problems.
    private mutating func load() -> Loaded? {
        let settings = settings
        let chain = take("admin.tls.certificate") { () throws(PEMFile.Unusable) in
            try PEMFile.certificates(settings.certificate)
        }
        let privateKey = take("admin.tls.key") { () throws(PEMFile.Unusable) in
            try PEMFile.privateKey(settings.key, isGuarded: true)
        }
        var authorities: [NIOSSLCertificate]?
        if let file = settings.clientCAFile {
            authorities = take("admin.tls.client_ca_file") { () throws(PEMFile.Unusable) in
                try PEMFile.certificates(file)
            }
        }
        guard problems.isEmpty, let privateKey, let chain,
            let expires = chain.map(\.notValidAfter).min(),
            let begins = chain.map(\.notValidBefore).max()
        else { return nil }
        do {
            return Loaded(
                context: try context(chain, privateKey, authorities), expires: Int64(expires),
                begins: Int64(begins),
                authoritiesExpire: authorities?.map(\.notValidAfter).min().map { Int64($0) })
        } catch {
            // Each part is valid by itself, so they do not belong together.
            problems.append(
                """
                admin.tls.key: "\(VisibleText.escaped(settings.key))" is not the key of the \
                certificate in "\(VisibleText.escaped(settings.certificate))" \
                (\(BoringSSLText.reason(of: error))). Give the key that the certificate was made \
                for, and put that certificate first in its file.
                """)
            return nil
        }
    }

    private func context(
        _ chain: [NIOSSLCertificate], _ key: NIOSSLPrivateKey, _ authorities: [NIOSSLCertificate]?
    ) throws -> NIOSSLContext {
        let sources = chain.map { NIOSSLCertificateSource.certificate($0) }
        var configuration =
            if let authorities {
                TLSConfiguration.makeServerConfigurationWithMTLS(
                    certificateChain: sources, privateKey: .privateKey(key),
                    trustRoots: .certificates(authorities))
            } else {
                TLSConfiguration.makeServerConfiguration(
                    certificateChain: sources, privateKey: .privateKey(key))
            }
        configuration.minimumTLSVersion =
            switch settings.minimumVersion {
            case .tls12: .tlsv12
            case .tls13: .tlsv13
            }
        configuration.cipherSuiteValues = Self.cipherSuites
        // For the certificates of callers.
        configuration.verifySignatureAlgorithms = SignatureSchemes.taken.map {
            SignatureAlgorithm(rawValue: $0)
        }
        configuration.applicationProtocols = ["http/1.1"]
        // The longest wait for the other side's close_notify.
        configuration.shutdownTimeout = .milliseconds(500)
        return try NIOSSLContext(configuration: configuration)
    }

    /// The value that `read` gives; `nil` when the file behind the setting `key` cannot be used.
    private mutating func take<Value>(
        _ key: String, _ read: () throws(PEMFile.Unusable) -> Value
    ) -> Value? {
        do throws(PEMFile.Unusable) {
            return try read()
        } catch {
            problems.append("\(key): \(error)")
            if error.isTransient { transientCount += 1 }
            return nil
        }
    }
}
