import SystemFiles

/// The TLS settings of the HTTP API.
package struct AdminTLSSettings: Sendable, Equatable {
    package enum Version: Sendable, Equatable {
        case tls12
        case tls13
    }

    /// Path of a PEM file with the certificate, followed by those that signed it.
    package var certificate: String
    /// Path of a PEM file with the private key, without a passphrase.
    package var key: String
    package var minimumVersion = Version.tls12
    /// Path of a PEM file with the authorities for the certificates that callers must show; `nil`
    /// asks callers for no certificate.
    package var clientCAFile: String?

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }

    /// The paths of all files in the settings.
    package var files: [String] { [certificate, key] + [clientCAFile].compactMap { $0 } }
}

/// All problems with the files for HTTPS; at least one.
package struct AdminTLSUnusable: FileRefusal, Equatable {
    /// Each problem names setting, file and advice; untrusted text is escaped.
    package let problems: [String]
    /// True when the files are not at fault: they could not be read for a reason that may pass.
    package let isTransient: Bool

    package var description: String { problems.joined(separator: "\n") }
}
