/// The TLS settings of one listener.
public struct TLSSettings: Sendable, Equatable {
    /// Paths of a certificate chain, leaf first, and of its private key; both PEM.
    public struct Pair: Sendable, Equatable {
        public var certificate: String
        public var key: String

        public init(certificate: String, key: String) {
            self.certificate = certificate
            self.key = key
        }
    }

    public enum ClientCertificates: String, Sendable, Equatable, CaseIterable {
        /// The broker asks for no certificate.
        case off
        /// A client may connect without a certificate; one that it shows must be valid.
        case optional
        /// A client must show a valid certificate.
        case required
    }

    /// The place in the configuration, for messages: `listeners[0].tls`.
    public var place: String
    /// At least one. The first also serves server names that no certificate has.
    public var certificates: [Pair]
    public var minimumVersion = SecureChannel.Version.tls12
    public var clientCertificates = ClientCertificates.off
    /// Path of a PEM file with the authorities that may issue clients' certificates.
    public var clientCAFile: String?
    /// Path of a PEM file with revocation lists for clients' certificates.
    public var crlFile: String?
    /// True when the common name of a client's certificate becomes its user name.
    public var takesUserName = false

    public init(place: String, certificates: [Pair]) {
        self.place = place
        self.certificates = certificates
    }

    /// The paths of all files in the settings.
    public var files: [String] {
        certificates.flatMap { [$0.certificate, $0.key] }
            + [clientCAFile, crlFile].compactMap { $0 }
    }
}

/// One problem with the files of a listener: the place, the complaint, and how to correct it.
public struct TLSProblem: Error, Hashable, Sendable, CustomStringConvertible {
    /// The setting as an operator writes it, such as `listeners[0].tls.certificate`.
    public let key: String
    /// The complaint, without a full stop; untrusted text is escaped.
    public let complaint: String
    /// Advice in whole sentences.
    public let cure: String
    /// True when the file is not at fault: the system could not open or read it now, and may be
    /// able to a second later.
    public let isTransient: Bool

    init(key: String, complaint: String, cure: String, isTransient: Bool = false) {
        self.key = key
        self.complaint = complaint
        self.cure = cure
        self.isTransient = isTransient
    }

    public var description: String { "\(key): \(complaint). \(cure)" }
}

/// All problems with the files of a listener; at least one.
public struct TLSProblems: Error, Hashable, Sendable, CustomStringConvertible {
    public let problems: [TLSProblem]

    public init(problems: [TLSProblem]) { self.problems = problems }

    public var description: String { problems.map(\.description).joined(separator: "\n") }
}
