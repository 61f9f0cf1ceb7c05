import COpenSSL

/// A handshake failed.
public struct TLSFailure: Error, Hashable, Sendable {
    /// The reason, from a small set, so that metrics can count each.
    public enum Reason: UInt8, CaseIterable, Sendable {
        /// The client did not speak TLS; most often it spoke plain MQTT.
        case notTLS
        /// No protocol version, cipher suite or group in common.
        case noCommonParameters
        /// A certificate is required and the client showed none.
        case noCertificate
        /// The client's certificate was refused: unknown issuer, expired, or revoked.
        case certificate
        /// No user name can be taken from the client's certificate.
        case certificateName
        /// The client sent an alert, for instance because it refuses the broker's certificate.
        case refusedByClient
        /// The client closed the connection.
        case closed
        /// The client sent more bytes than a handshake needs.
        case tooLarge
        /// The client was slow, and a newer handshake needed its place.
        case displaced
        /// The client broke the protocol.
        case protocolError
        /// The broker is out of memory or has a fault.
        case internalError

        /// A word for log lines and metrics.
        public var name: String {
            switch self {
            case .notTLS: "not_tls"
            case .noCommonParameters: "no_common_parameters"
            case .noCertificate: "no_certificate"
            case .certificate: "certificate"
            case .certificateName: "certificate_name"
            case .refusedByClient: "refused_by_client"
            case .closed: "closed"
            case .tooLarge: "too_large"
            case .displaced: "displaced"
            case .protocolError: "protocol_error"
            case .internalError: "internal_error"
            }
        }
    }

    public let reason: Reason
    /// The reason in words, for a log line; bytes from the peer are not in it unescaped.
    public let explanation: String
    /// The first bytes that the client sent in place of a handshake, at most five. Empty unless the
    /// reason is ``Reason/notTLS``.
    public internal(set) var opening: [UInt8] = []

    package init(_ reason: Reason, _ explanation: String) {
        self.reason = reason
        self.explanation = explanation
    }

    /// Classifies the first error of OpenSSL's queue. `verification` is the result of verifying the
    /// client's certificate; 0 for none.
    init(openSSLErrors: (code: UInt, text: String), verification: Int) {
        let reason = Int(ERR_GET_REASON(openSSLErrors.code))
        let library = Int(ERR_GET_LIB(openSSLErrors.code))
        guard library == ERR_LIB_SSL else {
            self.init(.protocolError, openSSLErrors.text)
            return
        }
        // Above this base, the number is that of the alert that the client sent.
        if reason > Self.alertBase, reason < Self.alertBase + 256 {
            self.init(.refusedByClient, "the client sent an alert: \(openSSLErrors.text)")
            return
        }
        switch CInt(truncatingIfNeeded: reason) {
        case SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST, SSL_R_WRONG_VERSION_NUMBER:
            self.init(
                .notTLS,
                "the client speaks without TLS; point it to a listener without tls, or let it use TLS"
            )
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SUITABLE_KEY_SHARE,
            SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, SSL_R_NO_SHARED_GROUPS,
            SSL_R_NO_PROTOCOLS_AVAILABLE, SSL_R_VERSION_TOO_LOW, SSL_R_INAPPROPRIATE_FALLBACK:
            self.init(.noCommonParameters, openSSLErrors.text)
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
            self.init(.noCertificate, "the client showed no certificate, and one is required")
        case SSL_R_CERTIFICATE_VERIFY_FAILED:
            let verdict = X509_verify_cert_error_string(verification).map { String(cString: $0) }
            self.init(.certificate, verdict ?? openSSLErrors.text)
        case SSL_R_EXCESSIVE_MESSAGE_SIZE, SSL_R_DATA_LENGTH_TOO_LONG, SSL_R_LENGTH_TOO_LONG,
            SSL_R_PACKET_LENGTH_TOO_LONG,
            SSL_R_ENCRYPTED_LENGTH_TOO_LONG:
            self.init(.tooLarge, openSSLErrors.text)
        case SSL_R_UNEXPECTED_EOF_WHILE_READING:
            self.init(.closed, "the client closed the connection")
        default: self.init(.protocolError, openSSLErrors.text)
        }
    }

    private static var alertBase: Int { 1_000 }
}

/// The queue of errors that OpenSSL keeps per thread.
enum OpenSSLErrors {
    /// Returns the first error's code and text, and empties the queue.
    static func peek() -> (code: UInt, text: String) {
        let code = ERR_peek_error()
        return (code, take())
    }

    /// Returns the first error's text, "no error" without one, and empties the queue.
    static func take() -> String {
        let code = ERR_peek_error()
        defer { ERR_clear_error() }
        guard code != 0 else { return "no error" }
        return ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
    }
}
