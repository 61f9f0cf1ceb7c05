import COpenSSL
import Glibc
import PlainText
import SystemFiles

/// The private key of a developer account (`.p8`), by which provider tokens are signed.
final class ProviderKey: Sendable {
    /// A file cannot be used. The description names it and the cure.
    struct Unusable: FileRefusal, Equatable {
        let description: String
        var isTransient = false
    }

    // Safe: the pointer is fixed, and after `init` OpenSSL only reads the key (EVP_DigestSignInit and
    // EVP_PKEY_eq take it as it is) and counts its references atomically.
    nonisolated(unsafe) private let key: OpaquePointer

    private init(_ key: OpaquePointer) { self.key = key }

    deinit { EVP_PKEY_free(key) }

    /// Reads a PEM file with a P-256 key, which nobody but its owner and group may read.
    static func load(path: String) throws(Unusable) -> ProviderKey {
        var bytes = try SecretFile.read(path, expected: "a .p8 key file")
        defer { bytes.erase() }
        let shown = VisibleText.quoted(path)
        let key = bytes.withUnsafeBytes { bytes -> OpaquePointer? in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, CInt(bytes.count)) else {
                return nil
            }
            defer { BIO_free(bio) }
            // No password is asked for on a terminal.
            return PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in 0 }, nil)
        }
        ERR_clear_error()
        guard let key else {
            throw Unusable(
                description: """
                    \(shown) holds no private key. Give the AuthKey_….p8 file as Apple's developer \
                    site offers it
                    """)
        }
        guard isP256(key) else {
            EVP_PKEY_free(key)
            throw Unusable(
                description: "\(shown) holds a key of another type; Apple's are for P-256 (ES256)")
        }
        return ProviderKey(key)
    }

    private static func isP256(_ key: OpaquePointer) -> Bool {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { name in
            var length = 0
            guard let base = name.baseAddress,
                EVP_PKEY_get_group_name(key, base, name.count, &length) == 1
            else { return false }
            return String(cString: base) == "prime256v1"
        }
    }

    /// True when both are the same key.
    func equals(_ other: ProviderKey) -> Bool { EVP_PKEY_eq(key, other.key) == 1 }

    /// A provider token: a JSON Web Token (RFC 7519) signed with ES256 (RFC 7518, section 3.4).
    ///
    /// Key and team are named by letters and digits alone; `seconds` is UNIX time. `nil` when OpenSSL
    /// cannot sign.
    func token(keyID: String, teamID: String, issuedAt seconds: Int64) -> String? {
        let header = Array(#"{"alg":"ES256","kid":"\#(keyID)"}"#.utf8)
        let claims = Array(#"{"iss":"\#(teamID)","iat":\#(seconds)}"#.utf8)
        let signed = Base64.urlText(of: header) + "." + Base64.urlText(of: claims)
        return signature(of: Array(signed.utf8)).map { signed + "." + Base64.urlText(of: $0) }
    }

    /// Both numbers of an ECDSA signature, in 32 bytes each.
    private func signature(of message: [UInt8]) -> [UInt8]? {
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        var encoded = [UInt8](repeating: 0, count: 128)
        var count = encoded.count
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
            EVP_DigestSign(context, &encoded, &count, message, message.count) == 1
        else { return nil }
        return encoded.withUnsafeBufferPointer { bytes -> [UInt8]? in
            var place = bytes.baseAddress
            guard let signature = d2i_ECDSA_SIG(nil, &place, count) else { return nil }
            defer { ECDSA_SIG_free(signature) }
            var numbers = [UInt8](repeating: 0, count: 64)
            let isWhole = numbers.withUnsafeMutableBufferPointer { numbers in
                guard let base = numbers.baseAddress else { return false }
                return BN_bn2binpad(ECDSA_SIG_get0_r(signature), base, 32) == 32
                    && BN_bn2binpad(ECDSA_SIG_get0_s(signature), base + 32, 32) == 32
            }
            return isWhole ? numbers : nil
        }
    }
}
