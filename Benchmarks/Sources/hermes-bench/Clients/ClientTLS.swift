import COpenSSL
import CBench
import Glibc

/// Shared by the TLS connections of a run; OpenSSL alone, like a phone.
///
/// The certificate is not checked, since that costs the client and not the measured broker.
final class ClientTLS {
    /// The result of a step.
    enum Step {
        case done(Int)
        case wantsRead
        case wantsWrite
        /// The peer has closed, or TLS has failed.
        case failed(String)
    }

    private static var primingMilliseconds: CInt { 5_000 }

    private let context: OpaquePointer
    /// The ticket that every connection shows; `nil` for full handshakes.
    private var session: OpaquePointer?
    private(set) var resumed = 0

    init() throws(BenchFailure) {
        guard let context = SSL_CTX_new(TLS_client_method()) else {
            throw BenchFailure("OpenSSL gives no context for TLS.")
        }
        self.context = context
        hermes_ssl_ctx_set_client_modes(context)
        hermes_ssl_ctx_set_client_sessions(context)
        SSL_CTX_set_quiet_shutdown(context, 1)
    }

    deinit {
        SSL_SESSION_free(session)
        SSL_CTX_free(context)
    }

    /// Makes one connection, sends `connect` and keeps the ticket that comes, for all that follow.
    func prime(_ address: BrokerAddress, connect: [UInt8]) throws(BenchFailure) {
        let descriptor = bench_connect(address.address, address.port)
        guard descriptor >= 0, let ssl = open(descriptor) else {
            throw BenchFailure("no connection to \(address) for a first ticket")
        }
        defer {
            close(ssl)
            _ = Glibc.close(descriptor)
        }
        var isSent = false
        var bytes = [UInt8](repeating: 0, count: 4_096)
        for _ in 0..<1_000 {
            if !isSent { isSent = SSL_write(ssl, connect, CInt(connect.count)) > 0 }
            if isSent, SSL_read(ssl, &bytes, CInt(bytes.count)) > 0,
                let given = SSL_get1_session(ssl), SSL_SESSION_is_resumable(given) == 1
            {
                session = given
                return
            }
            var event = pollfd(
                fd: descriptor, events: Int16(POLLIN | (SSL_want(ssl) == 2 ? POLLOUT : 0)),
                revents: 0)
            guard poll(&event, 1, Self.primingMilliseconds) > 0 else { break }
        }
        throw BenchFailure("\(address) gave no session ticket: \(Self.error())")
    }

    /// TLS for a socket that is connected or about to be; nothing is sent yet.
    func open(_ descriptor: CInt) -> OpaquePointer? {
        guard let ssl = SSL_new(context) else { return nil }
        SSL_set_fd(ssl, descriptor)
        SSL_set_connect_state(ssl)
        if let session, let copy = SSL_SESSION_dup(session) {
            SSL_set_session(ssl, copy)
            SSL_SESSION_free(copy)
        }
        return ssl
    }

    func close(_ ssl: OpaquePointer) {
        if SSL_session_reused(ssl) == 1 { resumed += 1 }
        // With close_notify, unless the handshake is incomplete.
        if SSL_is_init_finished(ssl) == 1 {
            SSL_set_quiet_shutdown(ssl, 0)
            SSL_shutdown(ssl)
        }
        SSL_free(ssl)
        ERR_clear_error()
    }

    func read(_ ssl: OpaquePointer, _ target: UnsafeMutableRawPointer, _ room: Int) -> Step {
        ERR_clear_error()
        return step(ssl, SSL_read(ssl, target, CInt(clamping: room)))
    }

    func write(_ ssl: OpaquePointer, _ source: UnsafeRawPointer, _ count: Int) -> Step {
        ERR_clear_error()
        return step(ssl, SSL_write(ssl, source, CInt(clamping: count)))
    }

    private func step(_ ssl: OpaquePointer, _ result: CInt) -> Step {
        if result > 0 { return .done(Int(result)) }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE, SSL_ERROR_WANT_CONNECT: return .wantsWrite
        case SSL_ERROR_ZERO_RETURN: return .failed("closed by the broker")
        case SSL_ERROR_SYSCALL where errno == ENOTCONN: return .wantsWrite
        default: return .failed(Self.error())
        }
    }

    private static func error() -> String {
        let code = ERR_get_error()
        guard code != 0 else { return "closed by the broker" }
        return ERR_reason_error_string(code).map { String(cString: $0) } ?? "TLS error \(code)"
    }
}
