/// What an operator decides for one listener with TLS.
public struct TLSSettings: Sendable, Equatable {
    /// A certificate chain, leaf first, and its private key; PEM files.
    public struct Pair: Sendable, Equatable {
        public var certificate: String
        public var key: String

        public init(certificate: String, key: String) {
            self.certificate = certificate
            self.key = key
        }
    }

    public enum ClientCertificates: String, Sendable, Equatable, CaseIterable {
        /// None is asked for.
        case off
        /// One that is shown must pass.
        case optional
        /// Nobody gets in without one.
        case required
    }

    /// The place in the configuration, for messages: `listeners[0].tls`.
    public var place: String
    /// At least one; the first serves names that none is made for.
    public var certificates: [Pair]
    public var minimumVersion = SecureChannel.Version.tls12
    public var clientCertificates = ClientCertificates.off
    /// Who may have issued clients' certificates; a PEM file.
    public var clientCAFile: String?
    /// Clients' certificates that no longer count; a PEM file.
    public var crlFile: String?
    /// The common name of a client's certificate is its user name.
    public var takesUserName = false

    public init(place: String, certificates: [Pair]) {
        self.place = place
        self.certificates = certificates
    }

    /// Every file that it names.
    public var files: [String] {
        certificates.flatMap { [$0.certificate, $0.key] }
            + [clientCAFile, crlFile].compactMap { $0 }
    }
}

/// One thing that is wrong with the files of a listener: where, what, and how to put it right.
public struct TLSProblem: Error, Hashable, Sendable, CustomStringConvertible {
    /// The key as an operator writes it, such as `listeners[0].tls.certificate`.
    public let key: String
    /// What is wrong, without a full stop; untrusted text is escaped.
    public let complaint: String
    /// Whole sentences.
    public let cure: String
    /// Nothing is wrong with the file: the system could not open or read it now, and may a second later.
    public let isTransient: Bool

    init(key: String, complaint: String, cure: String, isTransient: Bool = false) {
        self.key = key
        self.complaint = complaint
        self.cure = cure
        self.isTransient = isTransient
    }

    public var description: String { "\(key): \(complaint). \(cure)" }
}

/// Everything that is wrong with the files of a listener; at least one problem.
public struct TLSProblems: Error, Hashable, Sendable, CustomStringConvertible {
    public let problems: [TLSProblem]

    public init(problems: [TLSProblem]) { self.problems = problems }

    public var description: String { problems.map(\.description).joined(separator: "\n") }
}
