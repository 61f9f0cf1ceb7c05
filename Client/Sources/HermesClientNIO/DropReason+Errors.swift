import HermesClientCore
import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif
#if canImport(Network)
    import Network
#else
    import NIOPosix
    import NIOSSL
#endif

extension DropReason {
    /// The reason of a connection that could not be opened, or ended with an error.
    init(transportError error: any Error) {
        self =
            if let text = Self.objection(of: error) {
                .untrusted(text)
            } else if Self.isEndByPeer(error) {
                .closedByPeer
            } else {
                Self.cause(of: error)
            }
    }

    private static func cause(of error: any Error) -> DropReason {
        #if canImport(Network)
            switch error as? NWError {
            case .posix(.ECONNREFUSED)?: return .connectionRefused
            case .dns?: return .nameNotFound
            case .tls(let status)?: return .tlsFailed("OSStatus \(status)")
            default: break
            }
        #else
            if let error = error as? NIOConnectionError {
                if let first = error.connectionErrors.first {
                    return DropReason(transportError: first.error)
                }
                return .nameNotFound
            }
            if let error = error as? NIOSSLError, case .handshakeFailed(let cause) = error {
                return .tlsFailed("\(cause)")
            }
        #endif
        if let error = error as? IOError, error.errnoCode == ECONNREFUSED {
            return .connectionRefused
        }
        return .networkFailure
    }

    /// A write failed: the connection was gone, and nothing had told so.
    init(writeError error: any Error) {
        self = Self.objection(of: error).map { .untrusted($0) } ?? .writeFailed
    }

    private static func isEndByPeer(_ error: any Error) -> Bool {
        if let error = error as? IOError { return error.errnoCode == ECONNRESET }
        #if canImport(Network)
            // RST; a read on a socket that the system has taken gives ENOTCONN.
            if case .posix(let code)? = error as? NWError {
                return code == .ECONNRESET || code == .ENOTCONN
            }
        #else
            // Many brokers close without the alert that TLS asks for.
            if case .uncleanShutdown? = error as? NIOSSLError { return true }
        #endif
        return error as? ChannelError == .eof
    }

    /// The text of an error that says the broker is not to be trusted.
    private static func objection(of error: any Error) -> String? {
        #if canImport(Network)
            return nil
        #else
            if let error = error as? NIOSSLExtraError, error == .failedToValidateHostname {
                return "the certificate is for another host: \(error.description)"
            }
            if case .handshakeFailed(let cause)? = error as? NIOSSLError,
                case let text = String(describing: cause),
                text.contains("CERTIFICATE_VERIFY_FAILED")
            {
                return "the certificate does not lead to a trusted root, or is not valid now"
            }
            return nil
        #endif
    }
}
