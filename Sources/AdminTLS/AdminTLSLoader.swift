import Glibc
import NIOSSL
import PlainText
import SystemFiles

/// Reads the files for HTTPS and makes a TLS context of them, or reports everything that is wrong
/// with them.
package struct AdminTLSLoader {
    /// The largest file in bytes. A chain has some 5 KB, a bundle of authorities some 200 KB.
    private static let mostBytes = 4 << 20
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
        let chain = certificates(settings.certificate, key: "admin.tls.certificate")
        let privateKey = privateKey()
        let authorities = settings.clientCAFile.map {
            certificates($0, key: "admin.tls.client_ca_file")
        }
        guard problems.isEmpty, let privateKey, let expires = chain.map(\.notValidAfter).min()
        else { return nil }
        do {
            return Loaded(
                context: try context(chain, privateKey, authorities), expires: Int64(expires),
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

    private mutating func certificates(_ path: String, key: String) -> [NIOSSLCertificate] {
        guard let contents = contents(of: path, key: key) else { return [] }
        let found = (try? NIOSSLCertificate.fromPEMBytes(contents.bytes)) ?? []
        if found.isEmpty {
            problems.append(
                """
                \(key): "\(VisibleText.escaped(path))" holds no certificate in PEM. Give a file \
                with a part that begins with "-----BEGIN CERTIFICATE-----".
                """)
        }
        return found
    }

    private mutating func privateKey() -> NIOSSLPrivateKey? {
        let (path, name) = (settings.key, "admin.tls.key")
        guard let contents = contents(of: path, key: name) else { return nil }
        guard contents.status.mode & 0o027 == 0 else {
            problems.append(
                """
                \(name): "\(VisibleText.escaped(path))" can be read by others, or changed by its \
                group (mode 0\(String(contents.status.mode & 0o777, radix: 8))). \
                Run: chmod 600 '\(VisibleText.escaped(path))'
                """)
            return nil
        }
        if let key = try? NIOSSLPrivateKey(bytes: contents.bytes, format: .pem) { return key }
        problems.append(
            """
            \(name): "\(VisibleText.escaped(path))" holds no private key in PEM that can be read. \
            Give an RSA, ECDSA or Ed25519 key without a passphrase.
            """)
        return nil
    }

    private mutating func contents(of path: String, key: String) -> WholeFile? {
        do throws(WholeFile.Failure) {
            return try WholeFile(path, maximumByteCount: Self.mostBytes)
        } catch {
            problems.append("\(key): \(Self.text(error, path: VisibleText.escaped(path)))")
            if error.isTransient { transientCount += 1 }
            return nil
        }
    }

    private static func text(_ failure: WholeFile.Failure, path: String) -> String {
        switch failure {
        case .missing:
            "there is no file \"\(path)\". Correct the path, or write the file."
        case .notRegularFile: "\"\(path)\" is no regular file. Give the path of a PEM file."
        case .foreignLink(let owner):
            """
            "\(path)" is a symbolic link, and it or what it leads to belongs to user \(owner). \
            Name the file itself, or make the link as the user that runs hermesd or as root.
            """
        case .tooLarge: "\"\(path)\" is larger than 4 MiB. Give the path of a PEM file."
        case .system(let error) where error.code == EACCES:
            """
            \(error.complaint) Let the user that runs hermesd read the file and enter its folders.
            """
        case .system(let error): error.complaint
        }
    }
}
