import COpenSSL
import Glibc
import Synchronization
import SystemFiles

/// One connection's handshake on the broker's side, from the first byte to the keys for its
/// records.
///
/// A step takes up to some hundred microseconds, so it runs on a worker thread. The owner of the
/// socket waits until the socket can be read or written and then asks for the next step. The object
/// lives only as long as the handshake. The keys stay in it until ``takeChannel(into:)``, so that
/// no queue between threads holds a copy. ``withRest(_:)`` lends bytes that were read behind the
/// handshake, and bytes still to be sent.
///
/// ```
///            step                 step                    step
/// waiting ─────────> wantsRead ─────────> … ─────────> established | failed
/// ```
// One thread at a time uses it; the queue that hands it over orders them. Only `isAbandoned` is set
// from another thread.
public final class TLSHandshake: @unchecked Sendable {
    public enum Outcome: Sendable {
        /// Make the next step once the socket can be read.
        case wantsRead
        /// Make the next step once the socket can be written.
        case wantsWrite
        /// The handshake is complete; ``takeChannel(into:)`` gives the keys.
        case established(TLSPeer)
        /// The handshake has failed; an alert was sent if the protocol has one for it.
        case failed(TLSFailure)
    }

    /// The most steps of a handshake. A certificate list of 32 KiB in segments of 536 bytes takes
    /// 62 steps of some microseconds each.
    private static let mostSteps = 128

    public let context: TLSContext
    private var ssl: OpaquePointer?
    private let trace: UnsafeMutablePointer<HandshakeTrace>
    private var channel: SecureChannel?
    private var steps = 0
    private let isAbandoned = Atomic(false)

    /// Prepares a handshake; the first step begins it. The caller owns the socket and keeps it open
    /// while a step runs.
    public init(_ context: TLSContext, descriptor: CInt) {
        self.context = context
        trace = .allocate(capacity: 1)
        trace.initialize(to: HandshakeTrace(context: context, descriptor: descriptor))
    }

    deinit {
        channel?.eraseKeys()
        SSL_free(ssl)
        trace.pointee.erase()
        trace.deinitialize(count: 1)
        trace.deallocate()
    }

    /// True when the broker has signed for this client, the dearest part of a handshake. Must not
    /// be read during a step.
    public var hasSigned: Bool { trace.pointee.hasSigned }

    /// Makes all later steps do nothing. May be called from any thread.
    public func abandon() { isAbandoned.store(true, ordering: .relaxed) }

    /// Continues the handshake as far as the socket allows.
    public func step() -> Outcome {
        guard !isAbandoned.load(ordering: .relaxed) else {
            return .failed(TLSFailure(.closed, "the connection was closed meanwhile"))
        }
        ERR_clear_error()
        if ssl == nil {
            ssl = SSL_new(context.pointer)
            guard ssl != nil, let socket = HandshakeBIO.make(trace) else {
                return .failed(TLSFailure(.internalError, OpenSSLErrors.take()))
            }
            // Both directions share the BIO, and `ssl` frees it.
            SSL_set_bio(ssl, socket, socket)
            SSL_set_ex_data(ssl, 0, trace)
            SSL_set_accept_state(ssl)
        }
        steps += 1
        trace.pointee.socket.beginStep()
        let result = SSL_do_handshake(ssl)
        if result == 1 {
            defer { hermes_wipe_stack() }
            return finish()
        }
        let code = SSL_get_error(ssl, result)
        trace.pointee.socket.sendOutput()
        guard !trace.pointee.socket.isOverBudget else {
            return .failed(
                TLSFailure(
                    .tooLarge,
                    """
                    the client sent more than \(HandshakeSocket.mostBytes) bytes, or in more pieces \
                    than a handshake has
                    """))
        }
        switch code {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE:
            guard steps < Self.mostSteps else {
                return .failed(
                    TLSFailure(.tooLarge, "no end after \(Self.mostSteps) pieces of a handshake"))
            }
            return code == SSL_ERROR_WANT_READ ? .wantsRead : .wantsWrite
        case SSL_ERROR_SYSCALL, SSL_ERROR_ZERO_RETURN:
            return .failed(TLSFailure(.closed, "the client closed the connection"))
        default:
            var failure = TLSFailure(
                openSSLErrors: OpenSSLErrors.peek(),
                verification: context.asksForCertificate ? SSL_get_verify_result(ssl) : 0)
            if failure.reason == .notTLS { failure.opening = trace.pointee.socket.openingBytes }
            return .failed(failure)
        }
    }

    // MARK: Established

    /// Moves the record layer of a handshake that is ``Outcome/established(_:)`` to its place,
    /// once. False when there is none.
    public func takeChannel(into place: inout SecureChannel) -> Bool {
        defer { hermes_wipe_stack() }
        return moveChannel(into: &place)
    }

    /// Lends the rest of a handshake that is ``Outcome/established(_:)``: records that were already
    /// read, and records of the broker that are sealed and not sent.
    public func withRest(
        _ body: (_ input: UnsafeRawBufferPointer, _ output: UnsafeRawBufferPointer) -> Void
    ) {
        trace.pointee.socket.output.withUnsafeBytes { body(trace.pointee.socket.input, $0) }
    }

    @inline(never)
    private func moveChannel(into place: inout SecureChannel) -> Bool {
        guard let channel else { return false }
        place = channel
        self.channel?.eraseKeys()
        self.channel = nil
        return true
    }

    // Not inlined, so that what it leaves on the stack lies below the frame of its caller, who
    // wipes it.
    @inline(never)
    private func finish() -> Outcome {
        defer {
            SSL_free(ssl)
            ssl = nil
            trace.pointee.erase()
        }
        guard let channel = makeChannel() else {
            return .failed(
                TLSFailure(.internalError, "OpenSSL gave no keys for \(cipherName)"))
        }
        // No data may share a record with the client's last message: the rest would stay inside
        // OpenSSL.
        guard SSL_has_pending(ssl) == 0 else {
            return .failed(TLSFailure(.protocolError, "the client sent data within its handshake"))
        }
        var peer = TLSPeer(
            version: channel.version, cipher: cipherName, isResumed: SSL_session_reused(ssl) == 1)
        guard let certificate = SSL_get0_peer_certificate(ssl) else {
            self.channel = channel
            return .established(peer)
        }
        // A resumed session was verified when it began; the result stands in its ticket.
        guard
            let client = peer.isResumed
                ? VerifiedClient(session: SSL_get_session(ssl))
                : VerifiedClient(ssl, listsEndAt: context.revocationsEndAt)
        else {
            return .failed(TLSFailure(.internalError, "OpenSSL lost the client's certificates"))
        }
        guard X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0 else {
            return .failed(TLSFailure(.certificate, "certificate has expired"))
        }
        peer.client = client
        if context.settings.takesUserName {
            switch CertificateName.commonName(of: certificate) {
            case .success(let name): peer.userName = name
            case .failure(let flaw):
                return .failed(TLSFailure(.certificateName, flaw.description))
            }
        }
        self.channel = channel
        return .established(peer)
    }

    private var cipherName: String {
        SSL_CIPHER_get_name(SSL_get_current_cipher(ssl)).map { String(cString: $0) } ?? "no cipher"
    }

    private func makeChannel() -> SecureChannel? {
        let cipher = SSL_get_current_cipher(ssl)
        guard let algorithm = AEADAlgorithm(nid: SSL_CIPHER_get_cipher_nid(cipher)),
            let message = SSL_CIPHER_get_handshake_digest(cipher)
        else { return nil }
        let digest = EVP_MD_get_size(message) == 48 ? KeyDigest.sha384 : .sha256
        return SSL_version(ssl) == TLS1_3_VERSION
            ? makeChannel13(algorithm, digest) : makeChannel12(algorithm, digest)
    }

    private func makeChannel13(
        _ algorithm: AEADAlgorithm, _ digest: KeyDigest
    ) -> SecureChannel? {
        guard trace.pointee.clientSecretCount == digest.byteCount,
            trace.pointee.serverSecretCount == digest.byteCount,
            let sealedRecords = trace.pointee.sealedRecords
        else { return nil }
        var client = (0..<digest.byteCount).map { trace.pointee.clientSecret[$0] }
        var server = (0..<digest.byteCount).map { trace.pointee.serverSecret[$0] }
        defer {
            client.erase()
            server.erase()
        }
        return SecureChannel(
            .tls13, algorithm, digest,
            inbound: TrafficKey(secret: client, algorithm, digest, sequence: 0),
            outbound: TrafficKey(secret: server, algorithm, digest, sequence: sealedRecords),
            largestFragment: largestFragment)
    }

    /// The record size that the client asked for with max_fragment_length, in bytes; OpenSSL
    /// accepts it.
    private var largestFragment: Int {
        let code = SSL_SESSION_get_max_fragment_length(SSL_get_session(ssl))
        return (1...4).contains(code) ? 256 << Int(code) : SecureChannel.largestPlaintext
    }

    /// Derives the keys as in RFC 5246, section 6.3. Each side has sealed one record, its Finished.
    /// OpenSSL draws the explicit nonce of that record for AES, and ours count on from it.
    private func makeChannel12(
        _ algorithm: AEADAlgorithm, _ digest: KeyDigest
    ) -> SecureChannel? {
        var master = [UInt8](repeating: 0, count: 48)
        defer { master.erase() }
        guard
            SSL_SESSION_get_master_key(SSL_get_session(ssl), &master, master.count)
                == master.count,
            trace.pointee.sealedRecords == 0
        else { return nil }
        var serverRandom = [UInt8](repeating: 0, count: 32)
        var clientRandom = serverRandom
        SSL_get_server_random(ssl, &serverRandom, 32)
        SSL_get_client_random(ssl, &clientRandom, 32)
        let isAES = algorithm != .chaCha20Poly1305
        guard let firstNonce = isAES ? trace.pointee.socket.finishedNonce : [] else { return nil }
        let ivBytes = isAES ? 4 : AEADAlgorithm.nonceBytes
        let keyBytes = algorithm.keyBytes
        var block = digest.expand(
            master, "key expansion", seed: serverRandom + clientRandom, 2 * (keyBytes + ivBytes))
        defer { block.erase() }
        let ivs = (2 * keyBytes)..<(2 * keyBytes + ivBytes)
        return SecureChannel(
            .tls12, algorithm, digest,
            inbound: TrafficKey(
                key: block[..<keyBytes], iv: block[ivs], sequence: 1),
            outbound: TrafficKey(
                key: block[keyBytes..<(2 * keyBytes)], iv: block[ivs.upperBound...],
                firstNonce: firstNonce, sequence: 1),
            largestFragment: largestFragment)
    }
}

/// Facts about the peer of a finished handshake.
public struct TLSPeer: Sendable, Equatable {
    public var version: SecureChannel.Version
    /// OpenSSL's name of the cipher suite.
    public var cipher: String
    /// True when the session of an earlier connection was resumed.
    public var isResumed: Bool
    /// The user name from the client's certificate; `nil` without a certificate, or when names are
    /// not taken from it.
    public var userName: [UInt8]?
    /// Data by which the client can be judged again; `nil` without a certificate.
    public var client: VerifiedClient?
}
