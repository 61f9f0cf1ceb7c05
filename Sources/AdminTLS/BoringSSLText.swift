import NIOSSL

/// Texts of BoringSSL's errors, without the place in its source.
package enum BoringSSLText {
    /// A word for the error, such as `wrong_version_number`; for errors outside TLS `closed`,
    /// `reset` or the like.
    package static func reason(of error: any Error) -> String {
        switch error {
        case NIOSSLError.handshakeFailed(.sslError(let stack)),
            NIOSSLError.handshakeFailed(.unknownError(let stack)),
            BoringSSLError.sslError(let stack), BoringSSLError.unknownError(let stack):
            return stack.first.map { word(in: $0.description) } ?? "protocol_error"
        case NIOSSLError.uncleanShutdown: return "closed"
        case NIOSSLError.handshakeFailed: return "closed"
        case is NIOSSLError: return "tls_error"
        default: return "connection_lost"
        }
    }

    private static func word(in text: String) -> String {
        BoringSSLWord.reason(in: text) ?? (text.contains("EOF") ? "closed" : "protocol_error")
    }
}
