import COpenSSL
import PlainText
import SystemFiles

/// Reads the files of a listener's TLS settings and collects everything that is wrong with them.
struct TLSLoader {
    /// A certificate chain with its key; ``Loaded/free()`` frees both.
    struct LoadedPair {
        var index: Int
        var chain: [OpaquePointer]
        var key: OpaquePointer?
    }

    struct Loaded {
        var pairs: [LoadedPair] = []
        var authorities: [OpaquePointer] = []
        var revocations: [OpaquePointer] = []
        /// A digest of the rules for clients' certificates. A session resumes only under the same
        /// rules, so changing them ends all sessions, among them those of clients that have been
        /// revoked.
        var sessionIdentity: [UInt8] = []

        func free() {
            for pair in pairs {
                pair.chain.forEach { X509_free($0) }
                EVP_PKEY_free(pair.key)
            }
            authorities.forEach { X509_free($0) }
            revocations.forEach { X509_CRL_free($0) }
        }
    }

    private let settings: TLSSettings
    private(set) var problems: [TLSProblem] = []

    init(_ settings: TLSSettings) { self.settings = settings }

    mutating func load() -> Loaded {
        ERR_clear_error()
        var loaded = Loaded()
        for (index, pair) in settings.certificates.enumerated() {
            let chain = loadCertificates(pair.certificate, "certificate")
            let key = loadKey(pair.key)
            loaded.pairs.append(LoadedPair(index: index, chain: chain, key: key))
            guard let leaf = chain.first, let key else { continue }
            guard X509_check_private_key(leaf, key) != 1 else { continue }
            ERR_clear_error()
            add(
                "key",
                "\(VisibleText.quoted(pair.key)) is not the key of \(VisibleText.quoted(pair.certificate))",
                "Give the key that the certificate was made for; with several certificates, list keys in the same order."
            )
        }
        var rules: [UInt8] = Array("\(settings.place) \(settings.clientCertificates)".utf8)
        if let file = settings.clientCAFile {
            loaded.authorities = loadCertificates(file, "client_ca_file", &rules)
        }
        if let file = settings.crlFile { loaded.revocations = loadRevocations(file, &rules) }
        loaded.sessionIdentity = Self.digest(rules)
        return loaded
    }

    /// Sets a chain and its key in a context.
    mutating func use(_ pair: LoadedPair, in context: OpaquePointer) {
        guard let leaf = pair.chain.first else { return }
        let isTaken =
            SSL_CTX_use_certificate(context, leaf) == 1
            && SSL_CTX_use_PrivateKey(context, pair.key) == 1
            && pair.chain.dropFirst().allSatisfy {
                hermes_ssl_ctx_add_chain_certificate(context, $0) == 1
            }
        guard !isTaken else { return }
        add(
            "certificate",
            "\(VisibleText.quoted(settings.certificates[pair.index].certificate)) cannot be used: \(OpenSSLErrors.take())",
            "Give a certificate with an EC key (P-256) or an RSA key of 2048 bits or more, signed with SHA-256 or better."
        )
    }

    /// Sets the authorities for clients' certificates and the revocation lists in a context.
    mutating func use(_ loaded: Loaded, in context: OpaquePointer, identity: [UInt8]) {
        check(
            SSL_CTX_set_session_id_context(context, identity, UInt32(identity.count)) == 1,
            "the session context was not taken")
        guard settings.clientCertificates != .off else { return }
        let store = SSL_CTX_get_cert_store(context)
        for authority in loaded.authorities {
            check(
                X509_STORE_add_cert(store, authority) == 1
                    && SSL_CTX_add_client_CA(context, authority) == 1,
                "a certificate of client_ca_file was not taken")
        }
        for list in loaded.revocations {
            check(X509_STORE_add_crl(store, list) == 1, "a list of crl_file was not taken")
        }
        if !loaded.revocations.isEmpty {
            // Checks the whole chain: a certificate between client and authority may be revoked.
            X509_STORE_set_flags(
                store, UInt(X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL))
        }
        let mode =
            settings.clientCertificates == .required
            ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_PEER
        SSL_CTX_set_verify(context, mode, nil)
    }

    /// Notes what OpenSSL refused, if it refused anything.
    mutating func check(_ isDone: Bool, _ complaint: String) {
        guard !isDone else { return }
        problems.append(
            TLSProblem(
                key: settings.place, complaint: "\(complaint): \(OpenSSLErrors.take())",
                cure: "See whether /etc/ssl/openssl.cnf forbids what the settings ask for."))
    }

    // MARK: Files

    private mutating func loadCertificates(_ file: String, _ key: String) -> [OpaquePointer] {
        var ignored: [UInt8] = []
        return loadCertificates(file, key, &ignored)
    }

    private mutating func loadCertificates(
        _ file: String, _ key: String, _ rules: inout [UInt8]
    ) -> [OpaquePointer] {
        guard let bytes = read(file, key, isSecret: false) else { return [] }
        rules += bytes
        let found = Self.parse(bytes) { PEM_read_bio_X509($0, nil, nil, nil) }
        check(
            found, key, file, "certificate",
            "Give a PEM file, which has -----BEGIN CERTIFICATE----- in it.")
        return found.objects
    }

    private mutating func loadRevocations(
        _ file: String, _ rules: inout [UInt8]
    ) -> [OpaquePointer] {
        guard let bytes = read(file, "crl_file", isSecret: false) else { return [] }
        rules += bytes
        let found = Self.parse(bytes) { PEM_read_bio_X509_CRL($0, nil, nil, nil) }
        check(
            found, "crl_file", file, "revocation list",
            "Give a PEM file, which has -----BEGIN X509 CRL----- in it.")
        return found.objects
    }

    /// A file must hold at least one object and none that cannot be read, since an entry that is
    /// skipped could be the one that matters.
    private mutating func check(
        _ found: Parsed, _ key: String, _ file: String, _ noun: String, _ cure: String
    ) {
        if let flaw = found.flaw {
            add(
                key,
                "\(VisibleText.quoted(file)) holds a \(noun) that cannot be read, number \(found.objects.count + 1) in it: \(flaw)",
                "Take it out, or write the file anew.")
        } else if found.objects.isEmpty {
            add(key, "\(VisibleText.quoted(file)) holds no \(noun)", cure)
        }
    }

    private mutating func loadKey(_ file: String) -> OpaquePointer? {
        guard var bytes = read(file, "key", isSecret: true) else { return nil }
        defer { bytes.erase() }
        // The broker has nobody to ask for a passphrase.
        let key = Self.parse(bytes, most: 1) {
            PEM_read_bio_PrivateKey($0, nil, { _, _, _, _ in -1 }, nil)
        }.objects.first
        if key == nil {
            add(
                "key", "\(VisibleText.quoted(file)) holds no private key that can be read",
                "Give a PEM file with an unencrypted key; `openssl pkey -in OLD -out NEW` takes a passphrase off."
            )
        }
        return key
    }

    private mutating func read(_ file: String, _ key: String, isSecret: Bool) -> [UInt8]? {
        do throws(TLSFile.Unusable) {
            return try TLSFile.read(file, isSecret: isSecret)
        } catch {
            problems.append(
                TLSProblem(
                    key: "\(settings.place).\(key)", complaint: error.complaint, cure: error.cure,
                    isTransient: error.isTransient))
            return nil
        }
    }

    private mutating func add(_ key: String, _ complaint: String, _ cure: String) {
        problems.append(
            TLSProblem(key: "\(settings.place).\(key)", complaint: complaint, cure: cure))
    }

    /// The content of a PEM file.
    private struct Parsed {
        var objects: [OpaquePointer] = []
        /// The reason why the next object could not be read; `nil` at the end of the file.
        var flaw: String?
    }

    /// All objects of a PEM file, at most `most`; stops at one that cannot be read.
    private static func parse(
        _ bytes: [UInt8], most: Int = .max, _ next: (OpaquePointer?) -> OpaquePointer?
    ) -> Parsed {
        bytes.withUnsafeBytes { buffer in
            let source = BIO_new_mem_buf(buffer.baseAddress, CInt(buffer.count))
            defer { BIO_free(source) }
            ERR_clear_error()
            var parsed = Parsed()
            while parsed.objects.count < most {
                guard let object = next(source) else {
                    // The end of the file is an error as well.
                    let code = ERR_peek_last_error()
                    let isEnd =
                        Int(ERR_GET_LIB(code)) == ERR_LIB_PEM
                        && Int(ERR_GET_REASON(code)) == PEM_R_NO_START_LINE
                    let text = OpenSSLErrors.take()
                    if !isEnd { parsed.flaw = text }
                    break
                }
                parsed.objects.append(object)
            }
            return parsed
        }
    }

    private static func digest(_ bytes: [UInt8]) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: 32)
        _ = SHA256(bytes, bytes.count, &result)
        return result
    }
}
