import NIOCore
import NIOPosix
import NIOSSL
import PlainText
import SystemFiles

/// Why no connection to a service came to be: which step failed, its name, the connection to one of
/// its addresses, or TLS.
package enum ServiceConnectionFailure {
    /// The reason as a clause; `nil` for an error of another kind.
    package static func reason(of error: any Error) -> String? {
        switch error {
        case let error as IOError: connection(SystemError.reason(for: error.errnoCode))
        case let error as NIOConnectionError: reason(of: error)
        case let error as NIOSSLExtraError where error == .failedToValidateHostname:
            "the certificate is for another name"
        case is NIOSSLError, is BoringSSLError: handshake(BoringSSLText.reason(of: error))
        default: nil
        }
    }

    private static func reason(of error: NIOConnectionError) -> String {
        // The error of the last address that was tried; without one, the name has no address.
        guard let last = error.connectionErrors.last?.error else {
            return "the host's name has no address"
        }
        return reason(of: last) ?? connection(VisibleText.escaped("\(last)", limit: 200))
    }

    private static func connection(_ reason: String) -> String {
        "the connection failed: \(reason)"
    }

    /// A failed handshake. Without any authority on this system no certificate can be good, as in an
    /// image without `ca-certificates`.
    static func handshake(
        _ reason: String, hasAuthorities: Bool = SystemAuthorities.exist
    ) -> String {
        let text = "the TLS handshake failed: \(reason)"
        guard !hasAuthorities else { return text }
        return text
            + "; this system has no authorities: install ca-certificates, or set ca_file"
    }
}

/// The authorities of certificates that this system trusts.
enum SystemAuthorities {
    /// Where NIOSSL looks for them.
    private static let files = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
    ]

    /// False when there is no file with any.
    static var exist: Bool {
        files.contains { path in
            FileStatus(of: path).map { $0.isRegularFile && $0.size > 0 } ?? false
        }
    }
}
