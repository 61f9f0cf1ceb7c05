import AdminTLS
import AsyncHTTPClient
import NIOCore
import NIOPosix
import NIOSSL
import PlainText
import SystemFiles

/// Puts the errors of an attempt into words.
enum WebhookFailure {
    static func reason(of error: any Error, timeout: Duration) -> String {
        switch error {
        case let error as HTTPClientError: reason(of: error, timeout: timeout)
        case let error as IOError: SystemError.reason(for: error.errnoCode)
        case let error as NIOConnectionError: reason(of: error)
        case let error as NIOSSLExtraError where error == .failedToValidateHostname:
            "the receiver's certificate is for another name"
        case is NIOSSLError, is BoringSSLError:
            "the TLS handshake failed: \(BoringSSLText.reason(of: error))"
        default: VisibleText.escaped("\(error)", limit: 200)
        }
    }

    private static func reason(of error: HTTPClientError, timeout: Duration) -> String {
        switch error {
        case .deadlineExceeded, .connectTimeout, .readTimeout, .writeTimeout,
            .getConnectionFromPoolTimeout, .tlsHandshakeTimeout:
            "no answer within \(timeout)"
        case .remoteConnectionClosed: "the receiver closed the connection without an answer"
        default: VisibleText.escaped(error.description, limit: 200)
        }
    }

    /// The error of the last address that was tried.
    private static func reason(of error: NIOConnectionError) -> String {
        let last = error.connectionErrors.compactMap { ($0.error as? IOError)?.errnoCode }.last
        if let last { return SystemError.reason(for: last) }
        return "the host's address is not found"
    }
}
