extension TLSContext {
    /// A file of a listener's TLS settings that expires.
    public struct Ending: Sendable, Equatable {
        public enum Noun: String, Sendable {
            case certificate = "Certificate"
            case revocationList = "Revocation list"
            case authority = "Authority of clients' certificates"
        }

        public let noun: Noun
        /// The setting as an operator writes it, such as `listeners[0].tls.certificate`.
        public let key: String
        public let file: String
        /// The first time at which something in the file expires, in seconds since 1970.
        public let time: Int64
        /// Advice, without a full stop.
        public let cure: String
        /// The time from which a certificate is valid, in seconds since 1970; `nil` for other files.
        public var begins: Int64?
    }

    /// The expiry of all certificates, revocation lists and authorities.
    public var endings: [Ending] {
        var result = certificates.map {
            Ending(
                noun: .certificate, key: "\(settings.place).certificate", file: $0.file,
                time: $0.expiresAt,
                cure: "renew it; the broker reads the files by itself when they change",
                begins: $0.beginsAt)
        }
        if let time = revocationsEndAt, let file = settings.crlFile {
            result.append(
                Ending(
                    noun: .revocationList, key: "\(settings.place).crl_file", file: file,
                    time: time,
                    cure:
                        "have its authority issue another; without one no client with a certificate gets in"
                ))
        }
        if let time = authoritiesEndAt, let file = settings.clientCAFile {
            result.append(
                Ending(
                    noun: .authority, key: "\(settings.place).client_ca_file", file: file,
                    time: time,
                    cure: "put its successor in the file; clients whom it vouches for do not get in"
                ))
        }
        return result
    }
}
