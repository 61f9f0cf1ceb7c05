import COpenSSL
import Credentials
import PlainText

/// A key that verifies signatures of one algorithm, which the key fixes: a token only says which it
/// was signed with, and is refused if that differs. So a public key is never a secret of an HMAC.
package final class VerificationKey: Sendable {
    /// The name that a token's header may give (`kid`); `nil` for a key without one.
    package let identifier: ForeignText?
    package let algorithm: TokenAlgorithm
    /// Digest of the key's public part, or of the secret; equal keys have equal digests.
    package let digest: SHA256Digest

    // Safe: the pointer is fixed, and after `init` OpenSSL only reads the key and counts its
    // references atomically.
    nonisolated(unsafe) private let key: OpaquePointer?
    // Nothing changes the bytes after `init`, so any thread may read them.
    nonisolated(unsafe) private let secret: SecretBytes

    /// The least bytes of an HMAC's secret (RFC 7518, section 3.2).
    package static let secretByteCounts = 32...1_024
    /// Shorter RSA keys are too weak (RFC 7518, section 3.3); longer ones cost too much.
    package static let modulusBits = 2_048...8_192

    /// A secret for HS256, of ``secretByteCounts`` bytes.
    init(identifier: ForeignText?, secret: some Collection<UInt8>) {
        precondition(
            Self.secretByteCounts.contains(secret.count), "a secret of \(secret.count) bytes")
        self.identifier = identifier
        algorithm = .hs256
        key = nil
        self.secret = SecretBytes(copying: secret)
        digest = SHA256Digest(of: secret)
    }

    /// Adopts a public key of OpenSSL; `encoded` is its SubjectPublicKeyInfo.
    fileprivate init(
        identifier: ForeignText?, algorithm: TokenAlgorithm, adopting key: OpaquePointer,
        encoded: [UInt8]
    ) {
        self.identifier = identifier
        self.algorithm = algorithm
        self.key = key
        secret = SecretBytes(capacity: 1)
        digest = SHA256Digest(of: encoded)
    }

    deinit { EVP_PKEY_free(key) }

    /// True when a signature in the form of JWS (RFC 7515) is this key's, of these bytes.
    package func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        defer { ERR_clear_error() }
        guard let key else { return verifiesCode(signature, of: message) }
        switch algorithm {
        case .hs256: return false
        case .rs256: return Self.verifies(signature, of: message, key, EVP_sha256())
        case .es256:
            guard let encoded = ECDSASignature.encoded(signature) else { return false }
            return Self.verifies(encoded, of: message, key, EVP_sha256())
        case .edDSA:
            guard signature.count == 64 else { return false }
            return Self.verifies(signature, of: message, key, nil)
        }
    }

    private static func verifies(
        _ signature: [UInt8], of message: [UInt8], _ key: OpaquePointer, _ digest: OpaquePointer?
    ) -> Bool {
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        return EVP_DigestVerifyInit(context, nil, digest, nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    private func verifiesCode(_ code: [UInt8], of message: [UInt8]) -> Bool {
        var own = [UInt8](repeating: 0, count: 32)
        guard code.count == own.count else { return false }
        let result = secret.withBytes { secret in
            HMAC(
                EVP_sha256(), secret.baseAddress, CInt(secret.count), message, message.count, &own,
                nil)
        }
        // Takes the same time wherever both differ.
        return result != nil && CRYPTO_memcmp(own, code, own.count) == 0
    }
}

extension VerificationKey {
    /// A public key that cannot be used; the text is a clause such as "its RSA key has 1024 bits".
    package struct Unusable: Error, Equatable {
        package let reason: String
    }

    /// Reads a public key in DER (SubjectPublicKeyInfo, RFC 5280): RSA of ``modulusBits``, P-256, or
    /// Ed25519. The point of a P-256 key is on its curve.
    convenience init(
        identifier: ForeignText?, encoded: [UInt8]
    ) throws(Unusable) {
        let key = encoded.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var place = bytes.baseAddress
            guard let key = d2i_PUBKEY(nil, &place, bytes.count) else { return nil }
            guard place == bytes.baseAddress.map({ $0 + bytes.count }) else {
                EVP_PKEY_free(key)
                return nil
            }
            return key
        }
        ERR_clear_error()
        guard let key else { throw Unusable(reason: "it is no valid public key") }
        let algorithm: TokenAlgorithm
        do throws(Unusable) {
            algorithm = try Self.algorithm(of: key)
        } catch {
            EVP_PKEY_free(key)
            throw error
        }
        self.init(identifier: identifier, algorithm: algorithm, adopting: key, encoded: encoded)
    }

    /// The longest public exponent in bits; most have 17. A longer one makes each check dear.
    private static let mostExponentBits: CInt = 64

    /// With an exponent of 1 a signature is the padded message itself, so that anybody signs; an
    /// even one has no private key (RFC 8017, section 3.1).
    private static func hasSoundExponent(_ key: OpaquePointer) -> Bool {
        var exponent: OpaquePointer?
        guard EVP_PKEY_get_bn_param(key, "e", &exponent) == 1, let exponent else { return false }
        defer { BN_free(exponent) }
        return BN_is_odd(exponent) == 1 && 2...mostExponentBits ~= BN_num_bits(exponent)
    }

    private static func algorithm(of key: OpaquePointer) throws(Unusable) -> TokenAlgorithm {
        if EVP_PKEY_is_a(key, "RSA") == 1 {
            let bits = Int(EVP_PKEY_get_bits(key))
            guard modulusBits.contains(bits) else {
                throw Unusable(
                    reason: """
                        its RSA key has \(bits) bits; RS256 needs \(modulusBits.lowerBound) to \
                        \(modulusBits.upperBound)
                        """)
            }
            guard hasSoundExponent(key) else {
                throw Unusable(reason: "its public exponent is even, 1, or longer than 64 bits")
            }
            return .rs256
        }
        if EVP_PKEY_is_a(key, "ED25519") == 1 { return .edDSA }
        guard EVP_PKEY_is_a(key, "EC") == 1 else {
            throw Unusable(reason: "it is neither an RSA, a P-256 nor an Ed25519 key")
        }
        let isP256 = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { name in
            var length = 0
            guard let base = name.baseAddress,
                EVP_PKEY_get_group_name(key, base, name.count, &length) == 1
            else { return false }
            return String(cString: base) == "prime256v1"
        }
        guard isP256 else { throw Unusable(reason: "its curve is not P-256") }
        return .es256
    }
}

/// The form of an ECDSA signature on P-256 in a JWS: both numbers in 32 bytes each (RFC 7518,
/// section 3.4).
enum ECDSASignature {
    /// The form that OpenSSL reads (DER); `nil` unless it has 64 bytes. A number of zero, which fits
    /// every message in faulty libraries, is refused by OpenSSL (CVE-2022-21449).
    static func encoded(_ signature: [UInt8]) -> [UInt8]? {
        guard signature.count == 64 else { return nil }
        return DER.sequence(
            DER.integer(signature.prefix(32)) + DER.integer(signature.suffix(32)))
    }
}
