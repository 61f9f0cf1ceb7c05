import COpenSSL
import Glibc
import Testing

@testable import TLS

/// A client by OpenSSL alone, over a socket pair.
final class OpenSSLClient {
    struct Options {
        var version = SecureChannel.Version.tls13
        /// The cipher suite; `nil` lets OpenSSL choose.
        var suite: String?
        var serverName: String?
        var identity: TestCertificates.Pair?
        /// Intermediate certificates sent along.
        var chain: [TestCertificates.Pair] = []
        /// A session to resume.
        var session: OpaquePointer?
        /// The max_fragment_length code; 0 omits the extension.
        var fragmentCode: UInt8 = 0
    }

    let ssl: OpaquePointer
    /// The server's end.
    let descriptor: CInt
    /// Sessions from the server, newest last.
    private(set) var sessions: [OpaquePointer] = []
    /// The server's bytes that the last step of the handshake found, as they came.
    private(set) var arrived: [UInt8] = []
    private let context: OpaquePointer
    private let own: CInt

    init(_ options: Options = Options()) throws {
        var pair: [CInt] = [-1, -1]
        try #require(
            socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | O_NONBLOCK, 0, &pair) == 0)
        own = pair[0]
        descriptor = pair[1]
        let isNew = options.version == .tls13
        context = try #require(SSL_CTX_new(TLS_client_method()))
        let number = isNew ? TLS1_3_VERSION : TLS1_2_VERSION
        #expect(hermes_ssl_ctx_set_minimum_version(context, number) == 1)
        #expect(hermes_ssl_ctx_set_maximum_version(context, number) == 1)
        if let suite = options.suite {
            #expect(
                isNew
                    ? SSL_CTX_set_ciphersuites(context, suite) == 1
                    : SSL_CTX_set_cipher_list(context, suite) == 1)
        }
        if let identity = options.identity {
            #expect(SSL_CTX_use_certificate(context, identity.certificate) == 1)
            #expect(SSL_CTX_use_PrivateKey(context, identity.key) == 1)
            for pair in options.chain {
                #expect(hermes_ssl_ctx_add_chain_certificate(context, pair.certificate) == 1)
            }
        }
        hermes_ssl_ctx_set_client_sessions(context)
        SSL_CTX_sess_set_new_cb(context) { ssl, session in
            guard let owner = SSL_get_ex_data(ssl, 0), let session else { return 0 }
            let client = Unmanaged<OpenSSLClient>.fromOpaque(owner).takeUnretainedValue()
            client.sessions.append(session)
            return 1
        }
        ssl = try #require(SSL_new(context))
        SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
        SSL_set_fd(ssl, own)
        SSL_set_connect_state(ssl)
        if let name = options.serverName { #expect(hermes_ssl_set_server_name(ssl, name) == 1) }
        if let session = options.session {
            // OpenSSL uses a TLS 1.3 ticket once; a copy can be used again.
            let copy = SSL_SESSION_dup(session)
            #expect(SSL_set_session(ssl, copy) == 1)
            SSL_SESSION_free(copy)
        }
        #expect(SSL_set_tlsext_max_fragment_length(ssl, options.fragmentCode) == 1)
    }

    deinit {
        sessions.forEach { SSL_SESSION_free($0) }
        // Ending the connection without close_notify would invalidate its session.
        SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
        SSL_free(ssl)
        SSL_CTX_free(context)
        close(own)
        close(descriptor)
    }

    var isResumed: Bool { SSL_session_reused(ssl) == 1 }

    /// The server's latest session.
    func lastSession() throws -> OpaquePointer {
        guard let session = sessions.last else {
            throw TestCertificates.Failure(description: "the server gave no session")
        }
        return session
    }

    /// The common name of the server's certificate.
    var serverCommonName: String? {
        guard let certificate = SSL_get0_peer_certificate(ssl) else { return nil }
        guard case .success(let name) = CertificateName.commonName(of: certificate) else {
            return nil
        }
        return String(decoding: name, as: UTF8.self)
    }

    /// Runs both sides in turn until the server's has ended.
    func shakeHands(_ server: TLSHandshake) throws -> TLSHandshake.Outcome {
        for _ in 0..<100 {
            ERR_clear_error()
            peek()
            SSL_do_handshake(ssl)
            let outcome = server.step()
            switch outcome {
            case .wantsRead, .wantsWrite: continue
            case .established:
                peek()
                SSL_do_handshake(ssl)
                return outcome
            case .failed: return outcome
            }
        }
        throw TestCertificates.Failure(description: "the handshake does not end")
    }

    private func peek() {
        var chunk = [UInt8](repeating: 0, count: 20_000)
        let count = recv(own, &chunk, chunk.count, CInt(MSG_PEEK))
        if count > 0 { arrived = [UInt8](chunk[..<count]) }
    }

    func write(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        #expect(SSL_write(ssl, bytes, CInt(bytes.count)) == CInt(bytes.count))
    }

    /// All received bytes.
    func read() -> [UInt8] {
        var result: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 20_000)
        while true {
            let count = SSL_read(ssl, &chunk, CInt(chunk.count))
            guard count > 0 else { return result }
            result += chunk[..<Int(count)]
        }
    }

    /// The reason for an empty read: SSL_ERROR_WANT_READ, SSL_ERROR_ZERO_RETURN or SSL_ERROR_SSL.
    func readError() -> CInt {
        ERR_clear_error()
        var byte: UInt8 = 0
        return SSL_get_error(ssl, SSL_read(ssl, &byte, 1))
    }
}

/// The server's end of the pair after the handshake.
struct ServerEnd {
    var channel: SecureChannel
    let peer: TLSPeer
    let descriptor: CInt
    /// Bytes of an incomplete record.
    var kept: [UInt8] = []
    /// Records of the handshake that the server still has to send.
    private(set) var withheld: [UInt8] = []
    /// The largest total size of sealed records.
    var largestSealed = 0

    init(_ client: OpenSSLClient, _ context: TLSContext) throws {
        let handshake = TLSHandshake(context, descriptor: client.descriptor)
        let outcome = try client.shakeHands(handshake)
        guard case .established(let peer) = outcome else {
            throw TestCertificates.Failure(description: "\(outcome)")
        }
        channel = .none
        #expect(handshake.takeChannel(into: &channel))
        var second = SecureChannel.none
        #expect(!handshake.takeChannel(into: &second))
        var rest: (input: [UInt8], output: [UInt8]) = ([], [])
        handshake.withRest { rest = ([UInt8]($0), [UInt8]($1)) }
        kept = rest.input
        withheld = rest.output
        self.peer = peer
        descriptor = client.descriptor
        // With the first answer, as a broker does.
        send(withheld)
    }

    /// Opens the received bytes.
    mutating func read(_ ciphers: inout RecordCiphers) -> [UInt8] {
        var result: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 50_000)
        while true {
            let count = recv(descriptor, &chunk, chunk.count, 0)
            guard count > 0 else { return result }
            kept += chunk[..<count]
            result += open(&ciphers)
        }
    }

    /// Opens the kept bytes.
    mutating func open(_ ciphers: inout RecordCiphers) -> [UInt8] {
        let (opened, bytes) = channel.opened(kept, &ciphers)
        kept.removeFirst(opened.consumed)
        return bytes
    }

    /// Seals and sends, in records of at most the client's fragment size.
    mutating func write(_ bytes: [UInt8], _ ciphers: inout RecordCiphers) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = [UInt8](rest.prefix(Int(channel.largestFragment)))
            rest = rest.dropFirst(part.count)
            let record = channel.sealed(part, &ciphers)
            largestSealed = max(largestSealed, record.count)
            send(record)
        }
    }

    func send(_ bytes: [UInt8]) {
        #expect(Glibc.send(descriptor, bytes, bytes.count, 0) == bytes.count)
    }
}

extension SecureChannel {
    /// One record with this content.
    mutating func sealed(
        _ bytes: [UInt8], type: UInt8 = ContentType.applicationData,
        _ ciphers: inout RecordCiphers
    ) -> [UInt8] {
        var record = [UInt8](repeating: 0, count: bytes.count + Self.largestOverhead)
        let size = record.withUnsafeMutableBytes { record in
            guard let base = record.baseAddress else { return 0 }
            bytes.withUnsafeBytes { source in
                if let source = source.baseAddress {
                    (base + contentOffset).copyMemory(from: source, byteCount: bytes.count)
                }
            }
            return seal(type, bytes.count, in: base, &ciphers)
        }
        return [UInt8](record[..<size])
    }

    /// The records of ``sealEnd(in:_:)``.
    mutating func sealedEnd(_ ciphers: inout RecordCiphers) -> [UInt8] {
        var records = [UInt8](repeating: 0, count: Self.largestEnd)
        let size = records.withUnsafeMutableBytes { records in
            records.baseAddress.map { sealEnd(in: $0, &ciphers) } ?? 0
        }
        return [UInt8](records[..<size])
    }

    /// The result of ``open(_:into:_:)``.
    mutating func opened(
        _ bytes: [UInt8], _ ciphers: inout RecordCiphers
    ) -> (Opened, [UInt8]) {
        var target = [UInt8](repeating: 0, count: bytes.count + 1)
        let opened = bytes.withUnsafeBytes { source in
            target.withUnsafeMutableBytes { target in
                guard let base = target.baseAddress else { return Opened(consumed: 0, produced: 0) }
                return open(source, into: base, &ciphers)
            }
        }
        return (opened, [UInt8](target[..<opened.produced]))
    }
}
