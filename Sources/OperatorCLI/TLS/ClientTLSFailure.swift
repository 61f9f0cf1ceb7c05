import AdminTLS
import NIOSSL

/// A TLS failure, in the kinds that an operator can act on.
enum ClientTLSFailure: Equatable {
    /// The chain does not lead to a trusted authority, or one of its certificates has expired.
    case untrusted
    /// The certificate is valid, but for another name.
    case wrongName
    /// The server does not speak TLS.
    case notTLS
    /// The broker requires a client certificate.
    case wantsCertificate
    /// The broker gives no reason: it requires a certificate, or both sides have nothing in common.
    case refused
    /// Another failure, in the library's words.
    case other(String)

    /// `nil` when the error is not about TLS.
    init?(_ error: any Error) {
        switch error {
        case let error as NIOSSLExtraError where error == .failedToValidateHostname:
            self = .wrongName
        case NIOSSLError.unableToValidateCertificate: self = .untrusted
        case NIOSSLError.handshakeFailed(.sslError(let stack)), BoringSSLError.sslError(let stack):
            let word = stack.first.map {
                BoringSSLWord.reason(in: $0.description) ?? "connection_lost"
            }
            self.init(word: word ?? "protocol_error")
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            self = .other("connection_lost")
        default: return nil
        }
    }

    init(word: String) {
        switch word {
        case "certificate_verify_failed": self = .untrusted
        case "wrong_version_number", "http_request", "https_proxy_request": self = .notTLS
        case "tlsv13_alert_certificate_required", "tlsv1_alert_certificate_required",
            "tlsv1_alert_unknown_ca", "sslv3_alert_certificate_unknown",
            "sslv3_alert_bad_certificate":
            self = .wantsCertificate
        // In TLS 1.2 also when a certificate is missing.
        case "sslv3_alert_handshake_failure": self = .refused
        default: self = .other(word)
        }
    }
}
