import AsyncHTTPClient
import Glibc
import NIOCore
import NIOPosix
import PlainText
import SystemFiles

/// Turns the errors of a connection into messages about the broker and how to reach it.
struct ConnectionFailure {
    let failure: CommandFailure

    init(_ error: any Error, endpoint: AdminEndpoint, timeout: Duration) {
        let text =
            if let error = error as? HTTPClientError {
                Self.text(error, endpoint: endpoint, timeout: timeout)
            } else if let code = Self.code(of: error) {
                Self.text(code, endpoint: endpoint)
            } else {
                """
                cannot reach the broker at \(endpoint): \(VisibleText.escaped("\(error)")). \
                Check the address.
                """
            }
        failure = CommandFailure(.unreachable, text)
    }

    private static func text(
        _ error: HTTPClientError, endpoint: AdminEndpoint, timeout: Duration
    ) -> String {
        switch error {
        case .deadlineExceeded, .connectTimeout, .readTimeout, .writeTimeout,
            .getConnectionFromPoolTimeout, .tlsHandshakeTimeout:
            """
            no answer from \(endpoint) within \(timeout.components.seconds) s. Check that hermesd \
            runs there and is not overloaded, or wait longer with --timeout.
            """
        case .remoteConnectionClosed:
            """
            \(endpoint) closed the connection without an answer. Check that it is the broker's \
            HTTP port rather than its MQTT port, and look into the log of hermesd.
            """
        default:
            """
            cannot reach the broker at \(endpoint): \(VisibleText.escaped(error.description)). \
            Check the address.
            """
        }
    }

    private static func text(_ code: CInt, endpoint: AdminEndpoint) -> String {
        let reason = SystemError.reason(for: code)
        let cure =
            switch (endpoint, code) {
            case (.unixSocket, ENOENT):
                "Start hermesd with admin.unix_socket set to this path, or give --url instead."
            case (.unixSocket, EACCES):
                "Run as the user who runs hermesd, or give --url and a token instead."
            case (_, ECONNREFUSED):
                """
                Nothing listens there: start hermesd, or name its HTTP address with --url (its \
                log says it at the start).
                """
            case (_, ECONNRESET):
                "Check that it is the broker's HTTP port, and look into the log of hermesd."
            default:
                "Check the address and the network between."
            }
        return "cannot reach the broker at \(endpoint): \(reason). \(cure)"
    }

    /// The system's error code behind an error; for a connection, that of its last attempt.
    private static func code(of error: any Error) -> CInt? {
        if let error = error as? IOError { return error.errnoCode }
        guard let error = error as? NIOConnectionError else { return nil }
        return error.connectionErrors.compactMap { ($0.error as? IOError)?.errnoCode }.last
    }
}
