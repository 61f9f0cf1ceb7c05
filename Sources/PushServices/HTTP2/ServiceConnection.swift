import COpenSSL
import Glibc
import PlainText
import SystemFiles

/// One connection to the push service: a non-blocking socket, TLS, HTTP/2.
///
/// Owned by the sender's thread. TLS may want to read before it can write and the other way round;
/// a call that wants either is made again, with the same bytes, once the socket is ready for it.
final class ServiceConnection {
    enum State {
        case connecting, handshaking, open
    }

    /// The connection has ended; the description is for the log.
    struct Ended: Error {
        let description: String
    }

    /// A TLS record, and what one call reads.
    private static let bufferBytes = 16_384
    /// Time for the connection and the handshake together.
    private static let openingMilliseconds: UInt64 = 10_000

    let descriptor: CInt
    private(set) var state = State.connecting
    private(set) var http2: HTTP2Client
    /// The end of the time for connection and handshake.
    let openingDeadline: UInt64
    /// When it was begun to be opened.
    let openedAt: UInt64
    /// True once an answer has shown that the service takes the credentials: until then one stream
    /// is open at most.
    var isProven = false
    /// True once an answer has come that was no goodbye.
    var hasAnswered = false
    /// True once an answer has said goodbye.
    var hasSaidGoodbye = false
    /// True once no further notification is to go on it; it ends with its last stream.
    var isDraining = false
    /// The reason of a GOAWAY; `nil` before one.
    var goodbye: String?
    /// The last time at which bytes came, in milliseconds of the monotonic clock.
    private(set) var lastInput: UInt64
    /// When a PING was sent that is not answered; `nil` without one.
    private(set) var pingedAt: UInt64?
    private let ssl: OpaquePointer
    private var output: [UInt8] = []
    private var sent = 0
    private let input = UnsafeMutableRawBufferPointer.allocate(
        byteCount: bufferBytes, alignment: 16)
    private var readWantsWrite = false
    private var writeWantsRead = false

    /// Begins to connect.
    init(
        to address: HostAddresses.Address, host: String, _ tls: ServiceTLS, now: UInt64
    ) throws(Ended) {
        do {
            http2 = try HTTP2Client()
        } catch {
            throw Ended(description: error.description)
        }
        descriptor = socket(
            address.family,
            CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue),
            0)
        guard descriptor >= 0 else {
            throw Ended(description: SystemError.reason(for: errno))
        }
        guard let ssl = SSL_new(tls.context) else {
            Glibc.close(descriptor)
            throw Ended(description: "no memory for TLS")
        }
        self.ssl = ssl
        openingDeadline = now + Self.openingMilliseconds
        openedAt = now
        lastInput = now
        var one: CInt = 1
        setsockopt(
            descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<CInt>.size))
        _ = hermes_ssl_set_server_name(ssl, host)
        guard SSL_set1_host(ssl, host) == 1, SSL_set_fd(ssl, descriptor) == 1 else {
            throw Ended(description: "no memory for TLS")
        }
        SSL_set_connect_state(ssl)
        let result = address.bytes.withUnsafeBytes { bytes -> CInt in
            guard let base = bytes.baseAddress else { return -1 }
            return connect(
                descriptor, base.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        guard result == 0 || errno == EINPROGRESS else {
            throw Ended(description: SystemError.reason(for: errno))
        }
    }

    deinit {
        input.deallocate()
        SSL_free(ssl)
        Glibc.close(descriptor)
    }

    /// Tells the service that the connection ends, as far as the socket takes it at once.
    func sayGoodbye() { _ = SSL_shutdown(ssl) }

    /// What `poll` is to wait for.
    var interest: Int16 {
        if state == .connecting { return Int16(POLLOUT) }
        var events = Int16(POLLIN)
        if readWantsWrite || (hasOutput && !writeWantsRead) { events |= Int16(POLLOUT) }
        return events
    }

    private var hasOutput: Bool { sent < output.count || (state == .open && http2.wantsOutput) }

    /// Streams that may be opened now.
    var room: Int {
        guard state == .open, !isDraining, http2.takesRequests else { return 0 }
        return max(0, (isProven ? http2.mostStreams : min(1, http2.mostStreams)) - http2.openCount)
    }

    // MARK: Progress

    /// Goes on as far as the socket allows.
    func advance(now: UInt64) throws(Ended) {
        if state == .connecting { try finishConnecting() }
        if state == .handshaking { try handshake() }
        guard state == .open else { return }
        try receive(now: now)
        try flush()
    }

    private func finishConnecting() throws(Ended) {
        var event = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&event, 1, 0) == 1 else { return }
        var code: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size)
        guard code == 0 else { throw Ended(description: SystemError.reason(for: code)) }
        state = .handshaking
    }

    private func handshake() throws(Ended) {
        ERR_clear_error()
        let result = SSL_do_handshake(ssl)
        guard result == 1 else {
            switch SSL_get_error(ssl, result) {
            case SSL_ERROR_WANT_READ: readWantsWrite = false
            case SSL_ERROR_WANT_WRITE: readWantsWrite = true
            default: throw Ended(description: "the TLS handshake failed: \(tlsReason)")
            }
            return
        }
        readWantsWrite = false
        var chosen: UnsafePointer<UInt8>?
        var count: CUnsignedInt = 0
        SSL_get0_alpn_selected(ssl, &chosen, &count)
        guard count == 2, chosen?[0] == 0x68, chosen?[1] == 0x32 else {
            throw Ended(description: "the service does not speak HTTP/2")
        }
        state = .open
    }

    /// The certificate's fault, or that of OpenSSL's error queue.
    private var tlsReason: String {
        let verified = SSL_get_verify_result(ssl)
        if verified != X509_V_OK, let text = X509_verify_cert_error_string(verified) {
            return "the service's certificate is not taken: \(String(cString: text))"
        }
        let code = ERR_peek_error()
        if let text = ERR_reason_error_string(code) { return String(cString: text) }
        return errno == 0 ? "the peer closed the connection" : SystemError.reason(for: errno)
    }

    private func receive(now: UInt64) throws(Ended) {
        readWantsWrite = false
        // A bound, so that one connection does not keep the others waiting.
        for _ in 0..<64 {
            ERR_clear_error()
            let count = SSL_read(ssl, input.baseAddress, CInt(input.count))
            guard count > 0 else {
                switch SSL_get_error(ssl, count) {
                case SSL_ERROR_WANT_READ: return
                case SSL_ERROR_WANT_WRITE:
                    readWantsWrite = true
                    return
                case SSL_ERROR_ZERO_RETURN:
                    throw Ended(description: "the service closed the connection")
                default: throw Ended(description: "the connection broke: \(tlsReason)")
                }
            }
            lastInput = now
            do throws(HTTP2Client.Failure) {
                try http2.input(UnsafeRawBufferPointer(rebasing: input[..<Int(count)]))
            } catch {
                throw Ended(description: VisibleText.escaped(error.description, limit: 200))
            }
            if !http2.awaitsPing { pingedAt = nil }
            guard http2.wantsInput || http2.wantsOutput else {
                throw Ended(description: "the service ended the connection")
            }
        }
    }

    /// Sends what HTTP/2 has to say.
    func flush() throws(Ended) {
        guard state == .open else { return }
        writeWantsRead = false
        while true {
            if sent == output.count {
                output.removeAll(keepingCapacity: true)
                sent = 0
                do throws(HTTP2Client.Failure) {
                    try http2.output(into: &output, most: Self.bufferBytes)
                } catch {
                    throw Ended(description: VisibleText.escaped(error.description, limit: 200))
                }
                if output.isEmpty { return }
            }
            ERR_clear_error()
            let count = output.withUnsafeBytes {
                SSL_write(
                    ssl, $0.baseAddress.map { $0 + sent }, CInt($0.count - sent))
            }
            guard count > 0 else {
                switch SSL_get_error(ssl, count) {
                case SSL_ERROR_WANT_WRITE: return
                case SSL_ERROR_WANT_READ:
                    writeWantsRead = true
                    return
                default: throw Ended(description: "the connection broke: \(tlsReason)")
                }
            }
            sent += Int(count)
        }
    }

    /// Asks whether the service is still there.
    func ping(now: UInt64) throws(Ended) {
        pingedAt = now
        do throws(HTTP2Client.Failure) {
            try http2.ping()
        } catch {
            throw Ended(description: error.description)
        }
        try flush()
    }
}
