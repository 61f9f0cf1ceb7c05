import COpenSSL

/// Certificates, keys and rules for all handshakes of one listener.
///
/// Immutable, so that threads share it. A reload makes another context; handshakes under way keep
/// theirs.
public final class TLSContext: @unchecked Sendable {
    /// A certificate for metrics and warnings.
    public struct Certificate: Sendable, Equatable {
        /// Path of its file.
        public let file: String
        /// Time of expiry, in seconds since 1970.
        public let expiresAt: Int64
        /// Time from which it is valid, in seconds since 1970.
        public let beginsAt: Int64
    }

    /// Time at which the first revocation list expires, in seconds since 1970. From then on, no
    /// client with a certificate of its issuer is admitted. `nil` without a list that has such a
    /// time.
    public let revocationsEndAt: Int64?

    /// Time at which the first authority for clients' certificates expires, in seconds since 1970;
    /// `nil` without any.
    public let authoritiesEndAt: Int64?

    /// Seconds for which a session may be resumed after it began or was last resumed.
    static let sessionSeconds = 24 * 3_600
    /// The largest certificate list of a client, in bytes; usual chains have some 3 KB.
    private static let mostCertificateBytes = 32 * 1_024

    public let settings: TLSSettings
    /// In the order of the settings.
    public let certificates: [Certificate]
    let tickets: TicketKeys
    /// All certificates on the revocation lists, see ``CertificateNumber``.
    private let revoked: Set<UInt64>
    /// The authorities that may issue clients' certificates, see ``CertificateNumber``.
    private let authorities: Set<UInt64>
    /// One OpenSSL context per certificate; the server name that a client asks for chooses one.
    private let contexts: [OpaquePointer]
    private let leaves: [OpaquePointer]

    /// Reads the files. `tickets` seals the sessions that clients resume; with the keys of an
    /// earlier context, clients of that context can still resume.
    ///
    /// - Throws: ``TLSProblems`` with everything that is wrong with the files.
    public init(_ settings: TLSSettings, tickets: TicketKeys) throws(TLSProblems) {
        var loader = TLSLoader(settings)
        let loaded = loader.load()
        guard loader.problems.isEmpty else {
            loaded.free()
            throw TLSProblems(problems: loader.problems)
        }
        defer { loaded.free() }
        self.settings = settings
        self.tickets = tickets
        var contexts: [OpaquePointer] = []
        for pair in loaded.pairs {
            guard let context = SSL_CTX_new(TLS_server_method()) else { break }
            contexts.append(context)
            loader.check(Self.configure(context, settings), "the TLS settings were not taken")
            loader.use(pair, in: context)
            loader.use(loaded, in: context, identity: loaded.sessionIdentity)
        }
        self.contexts = contexts
        leaves = contexts.compactMap { SSL_CTX_get0_certificate($0) }
        certificates = zip(settings.certificates, leaves).map { pair, leaf in
            Certificate(
                file: pair.certificate,
                expiresAt: CertificateTime.seconds(X509_get0_notAfter(leaf)) ?? 0,
                beginsAt: CertificateTime.seconds(X509_get0_notBefore(leaf)) ?? 0)
        }
        revocationsEndAt = loaded.revocations.compactMap {
            CertificateTime.seconds(X509_CRL_get0_nextUpdate($0))
        }.min()
        authoritiesEndAt = loaded.authorities.compactMap {
            CertificateTime.seconds(X509_get0_notAfter($0))
        }.min()
        revoked = Self.revoked(on: loaded.revocations)
        authorities = Set(loaded.authorities.map { CertificateNumber.ofAuthority($0) })
        loader.check(contexts.count == loaded.pairs.count, "OpenSSL is out of memory")
        // All properties have values, so that `deinit` frees the contexts when this throws.
        guard loader.problems.isEmpty else { throw TLSProblems(problems: loader.problems) }
        for context in contexts { setCallbacks(context) }
    }

    deinit { for context in contexts { SSL_CTX_free(context) } }

    /// The context that a handshake begins with.
    var pointer: OpaquePointer? { contexts.first }

    var asksForCertificate: Bool { settings.clientCertificates != .off }

    private static func revoked(on lists: [OpaquePointer]) -> Set<UInt64> {
        var result: Set<UInt64> = []
        for list in lists {
            let issuer = X509_CRL_get_issuer(list)
            for index in 0..<hermes_crl_entry_count(list) {
                result.insert(
                    CertificateNumber.of(
                        issuer: issuer, serial: hermes_crl_entry_serial(list, index)))
            }
        }
        return result
    }

    /// True when a client that an earlier context admitted would still be admitted: no certificate
    /// of its chain is revoked, and its authority is still listed.
    ///
    /// In doubt false: a client that connects again is verified in full.
    public func admits(_ client: VerifiedClient) -> Bool {
        authorities.contains(client.authority) && !revoked.contains(client.certificate)
            && !client.issuers.contains { revoked.contains($0) }
    }

    private static func configure(_ context: OpaquePointer, _ settings: TLSSettings) -> Bool {
        hermes_ssl_ctx_set_server_options(context)
        hermes_ssl_ctx_set_session_cache_off(context)
        hermes_ssl_ctx_release_buffers(context)
        hermes_ssl_ctx_set_maximum_certificate_list(context, mostCertificateBytes)
        SSL_CTX_set_quiet_shutdown(context, 1)
        SSL_CTX_set_timeout(context, sessionSeconds)
        let minimum =
            switch settings.minimumVersion {
            case .tls12: TLS1_2_VERSION
            case .tls13: TLS1_3_VERSION
            }
        // Only authenticated encryption with forward secrecy.
        return hermes_ssl_ctx_set_minimum_version(context, minimum) == 1
            && hermes_ssl_ctx_set_maximum_version(context, TLS1_3_VERSION) == 1
            && SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1
            && SSL_CTX_set_ciphersuites(
                context,
                "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") == 1
            && hermes_ssl_ctx_set_groups(context, "X25519:P-256") == 1
            && SSL_CTX_set_num_tickets(context, 1) == 1
            && SSL_CTX_set_max_early_data(context, 0) == 1
    }

    private func setCallbacks(_ context: OpaquePointer) {
        SSL_CTX_set_keylog_callback(context) { ssl, line in
            guard let line else { return }
            HandshakeTrace.of(ssl)?.pointee.note(keyLogLine: line)
        }
        SSL_CTX_set_msg_callback(context) { isSent, _, contentType, bytes, count, ssl, _ in
            guard isSent == 1 else { return }
            HandshakeTrace.of(ssl)?.pointee.note(
                sent: contentType, bytes, count, isTLS13: SSL_version(ssl) == TLS1_3_VERSION)
        }
        SSL_CTX_set_tlsext_ticket_key_evp_cb(context) { ssl, name, iv, cipher, mac, isSealing in
            guard let trace = HandshakeTrace.of(ssl), let name, let iv else { return -1 }
            let tickets = trace.pointee.context.takeUnretainedValue().tickets
            return isSealing == 1
                ? tickets.seal(name, iv, cipher, mac)
                : tickets.open(
                    name, iv, cipher, mac, renews: SSL_version(ssl) == TLS1_3_VERSION)
        }
        if asksForCertificate { setTicketCallbacks(context) }
        hermes_ssl_ctx_set_server_name_callback(
            context,
            { ssl, _, _ in
                guard let trace = HandshakeTrace.of(ssl) else { return SSL_TLSEXT_ERR_NOACK }
                return trace.pointee.context.takeUnretainedValue().chooseCertificate(ssl)
            }, nil)
    }

    /// Stores the result of a certificate's verification in the session ticket, because OpenSSL
    /// does not verify the certificate of a resumed session again.
    private func setTicketCallbacks(_ context: OpaquePointer) {
        SSL_CTX_set_session_ticket_cb(
            context,
            { ssl, _ in
                guard let trace = HandshakeTrace.of(ssl) else { return 0 }
                // A resumed session passes on what its own ticket carried.
                guard SSL_session_reused(ssl) == 0,
                    let client = VerifiedClient(
                        ssl,
                        listsEndAt: trace.pointee.context.takeUnretainedValue().revocationsEndAt)
                else { return 1 }
                let bytes = client.encoded
                return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), bytes, bytes.count)
            },
            { ssl, session, _, _, status, _ in
                guard status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW,
                    let trace = HandshakeTrace.of(ssl),
                    trace.pointee.context.takeUnretainedValue().takes(ticketOf: session)
                else { return SSL_TICKET_RETURN_IGNORE_RENEW }
                return status == SSL_TICKET_SUCCESS
                    ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW
            }, nil)
    }

    /// True when a session may be resumed. Otherwise its client makes a full handshake and is
    /// verified.
    private func takes(ticketOf session: OpaquePointer?) -> Bool {
        guard SSL_SESSION_get0_peer(session) != nil else { return true }
        guard let client = VerifiedClient(session: session) else { return false }
        return tickets.now < client.validUntil && admits(client)
    }

    /// Chooses the certificate for the server name that the client asks for: exact names before
    /// wildcards. Without a match the client gets the first certificate and decides itself.
    private func chooseCertificate(_ ssl: OpaquePointer?) -> CInt {
        guard let name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name) else {
            return SSL_TLSEXT_ERR_NOACK
        }
        let count = strlen(name)
        guard count > 0, count <= 255 else { return SSL_TLSEXT_ERR_NOACK }
        for flags in [X509_CHECK_FLAG_NO_WILDCARDS, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS] {
            for (context, leaf) in zip(contexts, leaves)
            where X509_check_host(leaf, name, count, UInt32(flags), nil) == 1 {
                if context != contexts.first { SSL_set_SSL_CTX(ssl, context) }
                return SSL_TLSEXT_ERR_OK
            }
        }
        return SSL_TLSEXT_ERR_NOACK
    }
}

/// Reads the times in certificates.
enum CertificateTime {
    /// The time in seconds since 1970; `nil` when it is missing or unreadable.
    static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        guard let time else { return nil }
        var parts = tm()
        guard ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
        return Int64(timegm(&parts))
    }
}
