import AdminModel
import NIOSSL

/// What went wrong with TLS, as far as a person can act on it.
enum TLSFailure: Equatable {
    /// The chain does not lead to anyone who is trusted, or one of it is over.
    case untrusted
    /// It does, and is for another name.
    case wrongName
    /// What answered speaks no TLS.
    case notTLS
    /// The broker asks for a certificate of ours.
    case wantsCertificate
    /// The broker gives no reason: it asks for a certificate, or there is nothing that both know.
    case refused
    /// In the library's words.
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
        // In TLS 1.2 also for want of a certificate.
        case "sslv3_alert_handshake_failure": self = .refused
        default: self = .other(word)
        }
    }
}
