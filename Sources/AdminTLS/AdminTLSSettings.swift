import Credentials

/// What an operator decides for HTTPS.
package struct AdminTLSSettings: Sendable, Equatable {
    package enum Version: Sendable, Equatable {
        case tls12
        case tls13
    }

    /// PEM file with the certificate and, behind it, those that vouch for it.
    package var certificate: String
    /// PEM file with its private key, without a passphrase.
    package var key: String
    package var minimumVersion = Version.tls12
    /// PEM file with those who may issue the certificates that callers must show; `nil` asks for
    /// none.
    package var clientCAFile: String?

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }

    /// Every file that it names.
    package var files: [String] { [certificate, key] + [clientCAFile].compactMap { $0 } }
}

/// Everything that is wrong with the files of HTTPS: at least one problem.
package struct AdminTLSUnusable: FileRefusal, Equatable {
    /// Each names key, file and cure; untrusted text is escaped.
    package let problems: [String]
    /// Nothing is wrong with the files: they could not be read for a reason that may pass.
    package let isTransient: Bool

    package var description: String { problems.joined(separator: "\n") }
}
