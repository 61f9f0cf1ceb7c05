import COpenSSL
import Glibc
import PlainText
import SystemFiles

/// What TLS connections to the push service share: authorities, the client's certificate, versions.
final class ServiceTLS: Sendable {
    // Safe: the pointer is fixed, and after `init` nothing sets anything in the context. SSL_new, its
    // only use, takes a reference under OpenSSL's own lock.
    nonisolated(unsafe) let context: OpaquePointer

    /// Names `h2` for ALPN, with its length (RFC 7301).
    private static let protocols: [UInt8] = [2, 0x68, 0x32]

    /// Reads the files. Without an identity the connection proves nobody, and a token does.
    init(_ identity: APNsSettings.Identity?, caFile: String?) throws(ProviderKey.Unusable) {
        guard let context = SSL_CTX_new(TLS_client_method()) else {
            throw ProviderKey.Unusable(description: "no memory for TLS", isTransient: true)
        }
        self.context = context
        _ = hermes_ssl_ctx_set_minimum_version(context, TLS1_2_VERSION)
        hermes_ssl_ctx_set_client_modes(context)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_alpn_protos(context, Self.protocols, CUnsignedInt(Self.protocols.count))
        if let file = caFile {
            guard SSL_CTX_load_verify_locations(context, file, nil) == 1 else {
                ERR_clear_error()
                throw ProviderKey.Unusable(
                    description: """
                        \(VisibleText.quoted(file)) holds no certificates of authorities. Give the \
                        path of a PEM file
                        """)
            }
        } else {
            SSL_CTX_set_default_verify_paths(context)
        }
        if case .certificate(let file, let keyFile, let passwordFile) = identity {
            try use(certificate: file, keyFile, passwordFile)
        }
    }

    deinit { SSL_CTX_free(context) }

    private func use(
        certificate file: String, _ keyFile: String?, _ passwordFile: String?
    ) throws(ProviderKey.Unusable) {
        defer { ERR_clear_error() }
        if let keyFile {
            var key = try SecretFile.read(keyFile, expected: "a PEM file with a key")
            key.erase()
            guard SSL_CTX_use_certificate_chain_file(context, file) == 1,
                SSL_CTX_use_PrivateKey_file(context, keyFile, SSL_FILETYPE_PEM) == 1,
                SSL_CTX_check_private_key(context) == 1
            else {
                throw ProviderKey.Unusable(
                    description: """
                        \(VisibleText.quoted(file)) and \(VisibleText.quoted(keyFile)) are no \
                        certificate and its key. Give two PEM files that belong together
                        """)
            }
            return
        }
        var bytes = try SecretFile.read(file, expected: "a .p12 file")
        defer { bytes.erase() }
        var password: [UInt8] = []
        if let passwordFile {
            password = try SecretFile.read(passwordFile, expected: "a file with a password")
            if password.last == UInt8(ascii: "\n") { password.removeLast() }
        }
        password.append(0)
        defer { password.erase() }
        var key: OpaquePointer?
        var certificate: OpaquePointer?
        let isRead = bytes.withUnsafeBytes { bytes in
            password.withUnsafeBytes { password -> Bool in
                guard let bio = BIO_new_mem_buf(bytes.baseAddress, CInt(bytes.count)) else {
                    return false
                }
                defer { BIO_free(bio) }
                guard let archive = d2i_PKCS12_bio(bio, nil) else { return false }
                defer { PKCS12_free(archive) }
                return PKCS12_parse(
                    archive, password.baseAddress?.assumingMemoryBound(to: CChar.self), &key,
                    &certificate, nil) == 1
            }
        }
        defer {
            EVP_PKEY_free(key)
            X509_free(certificate)
        }
        guard isRead, SSL_CTX_use_certificate(context, certificate) == 1,
            SSL_CTX_use_PrivateKey(context, key) == 1
        else {
            throw ProviderKey.Unusable(
                description: """
                    \(VisibleText.quoted(file)) cannot be opened: it is no .p12 file, or the password \
                    is another
                    """)
        }
    }
}
