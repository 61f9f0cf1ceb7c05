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
            if let fault = error as? TransportFault {
                fault.reason
            } else if let text = Self.objection(of: error) {
                .untrusted(text)
            } else {
                Self.endByPeer(error) ?? Self.cause(of: error)
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
            // An alert that comes after the handshake: with TLS 1.3 the refusal of a client's
            // certificate does.
            if let error = error as? BoringSSLError { return .tlsFailed("\(error)") }
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

    /// The reason of a connection that the other end has closed; `nil` for another error.
    private static func endByPeer(_ error: any Error) -> DropReason? {
        if let error = error as? IOError {
            return switch error.errnoCode {
            case ECONNRESET: .resetByPeer
            // A read finds that RST has come after the end of what was sent.
            case EPIPE, ENOTCONN: .writeFailed
            default: nil
            }
        }
        #if canImport(Network)
            if case .posix(let code)? = error as? NWError {
                return switch code {
                case .ECONNRESET: .resetByPeer
                // The system has taken the socket, as it does with those of suspended programs.
                case .EPIPE, .ENOTCONN: .writeFailed
                default: nil
                }
            }
        #else
            // Many brokers close without the alert that TLS asks for.
            if case .uncleanShutdown? = error as? NIOSSLError { return .closedByPeer }
        #endif
        return error as? ChannelError == .eof ? .closedByPeer : nil
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
