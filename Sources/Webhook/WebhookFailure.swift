import AdminTLS
import AsyncHTTPClient
import PlainText

/// Puts the errors of an attempt into words.
enum WebhookFailure {
    static func reason(of error: any Error, timeout: Duration) -> String {
        switch error {
        case let error as HTTPClientError: reason(of: error, timeout: timeout)
        default:
            ServiceConnectionFailure.reason(of: error)
                ?? VisibleText.escaped("\(error)", limit: 200)
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
}
