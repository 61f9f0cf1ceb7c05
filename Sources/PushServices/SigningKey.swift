import COpenSSL

/// A private key of a PEM file that signs with SHA-256.
final class SigningKey: Sendable {
    // Safe: the pointer is fixed, and after `init` OpenSSL only reads the key (EVP_DigestSignInit and
    // EVP_PKEY_eq take it as it is) and counts its references atomically.
    nonisolated(unsafe) private let key: OpaquePointer

    /// Reads the first private key of a PEM text; `nil` when it has none, or one with a password.
    init?(pem: [UInt8]) {
        let key = pem.withUnsafeBytes { bytes -> OpaquePointer? in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, CInt(bytes.count)) else {
                return nil
            }
            defer { BIO_free(bio) }
            // No password is asked for on a terminal.
            return PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in 0 }, nil)
        }
        ERR_clear_error()
        guard let key else { return nil }
        self.key = key
    }

    deinit { EVP_PKEY_free(key) }

    /// True for a key for ES256 (RFC 7518, section 3.4).
    var isP256: Bool {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { name in
            var length = 0
            guard let base = name.baseAddress,
                EVP_PKEY_get_group_name(key, base, name.count, &length) == 1
            else { return false }
            return String(cString: base) == "prime256v1"
        }
    }

    /// True for a key for RS256, which has at least 2,048 bits (RFC 7518, section 3.3).
    var isRSA: Bool { EVP_PKEY_is_a(key, "RSA") == 1 && EVP_PKEY_get_bits(key) >= 2_048 }

    /// True when both are the same key.
    func equals(_ other: SigningKey) -> Bool { EVP_PKEY_eq(key, other.key) == 1 }

    /// The signature in OpenSSL's form: PKCS #1 (RFC 8017, section 8.2) for RSA, DER for ECDSA; `nil`
    /// when it cannot sign.
    func signature(of message: [UInt8]) -> [UInt8]? {
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        var signature = [UInt8](repeating: 0, count: Int(EVP_PKEY_get_size(key)))
        var count = signature.count
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
            EVP_DigestSign(context, &signature, &count, message, message.count) == 1
        else { return nil }
        return Array(signature.prefix(count))
    }
}
