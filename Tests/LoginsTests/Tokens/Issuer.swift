import COpenSSL
import Glibc
import PlainText

@testable import Logins

/// A login service: keys of its own, made for each test run, and tokens signed by them.
final class Issuer: @unchecked Sendable {
    // Used by one test at a time; OpenSSL only reads keys.
    private let key: OpaquePointer?
    private let secret: [UInt8]
    let algorithm: TokenAlgorithm

    /// A time at which tokens of these tests are valid, in UNIX seconds.
    static let now: Int64 = 1_800_000_000

    private init(_ algorithm: TokenAlgorithm, _ key: OpaquePointer?, secret: [UInt8] = []) {
        self.algorithm = algorithm
        self.key = key
        self.secret = secret
    }

    deinit { EVP_PKEY_free(key) }

    static let hs256 = Issuer(.hs256, nil, secret: Array("0123456789abcdef0123456789abcdef".utf8))
    static let rs256 = Issuer(.rs256, made("RSA") { EVP_PKEY_CTX_set_rsa_keygen_bits($0, 2_048) })
    static let es256 = Issuer(
        .es256, made("EC") { EVP_PKEY_CTX_set_group_name($0, "P-256") })
    static let edDSA = Issuer(.edDSA, made("ED25519") { _ in 1 })
    static let all = [hs256, rs256, es256, edDSA]

    /// A key of another kind or size than is taken.
    static func unfit(_ type: String, bits: CInt = 0, group: String = "") -> Issuer {
        Issuer(
            .rs256,
            made(type) { context in
                if bits > 0 { return EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits) }
                return group.isEmpty ? 1 : EVP_PKEY_CTX_set_group_name(context, group)
            })
    }

    private static func made(
        _ type: String, _ setUp: (OpaquePointer) -> CInt
    ) -> OpaquePointer? {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, type, nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, setUp(context) == 1,
            EVP_PKEY_keygen(context, &key) == 1
        else { return nil }
        return key
    }

    // MARK: Keys

    /// The public key in DER.
    var encoded: [UInt8] {
        guard let key else { return [] }
        var bytes = [UInt8](repeating: 0, count: Int(i2d_PUBKEY(key, nil)))
        _ = bytes.withUnsafeMutableBufferPointer { bytes in
            var place = bytes.baseAddress
            return i2d_PUBKEY(key, &place)
        }
        return bytes
    }

    /// The public key in PEM, or the secret.
    var pem: [UInt8] {
        guard let key, let bio = BIO_new(BIO_s_mem()) else { return secret }
        defer { BIO_free(bio) }
        _ = PEM_write_bio_PUBKEY(bio, key)
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = BIO_read(bio, &bytes, CInt(bytes.count))
        return Array(bytes.prefix(Int(count)))
    }

    func verificationKey(_ identifier: ForeignText? = nil) throws -> VerificationKey {
        if algorithm == .hs256 { return VerificationKey(identifier: identifier, secret: secret) }
        return try VerificationKey(identifier: identifier, encoded: encoded)
    }

    // MARK: Tokens

    /// A token with this header and these claims, as they stand.
    func token(header: String, claims: String) -> [UInt8] {
        let signed = "\(base64URL(Array(header.utf8))).\(base64URL(Array(claims.utf8)))"
        return Array("\(signed).\(base64URL(signature(of: Array(signed.utf8))))".utf8)
    }

    /// A token of this service's algorithm that is valid at ``now``.
    func token(_ claims: String = #"{"sub":"anna","exp":1800003600}"#) -> [UInt8] {
        token(header: #"{"alg":"\#(algorithm.rawValue)"}"#, claims: claims)
    }

    func signature(of message: [UInt8]) -> [UInt8] {
        guard let key else { return code(of: message, secret) }
        guard let context = EVP_MD_CTX_new() else { return [] }
        defer { EVP_MD_CTX_free(context) }
        let digest = EVP_PKEY_is_a(key, "ED25519") == 1 ? nil : EVP_sha256()
        var signature = [UInt8](repeating: 0, count: 1_024)
        var count = signature.count
        guard EVP_DigestSignInit(context, nil, digest, nil, key) == 1,
            EVP_DigestSign(context, &signature, &count, message, message.count) == 1
        else { return [] }
        signature.removeLast(signature.count - count)
        return EVP_PKEY_is_a(key, "EC") == 1 ? numbers(signature) : signature
    }

    /// The HMAC of SHA-256 by any bytes.
    func code(of message: [UInt8], _ secret: [UInt8]) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: 32)
        HMAC(EVP_sha256(), secret, CInt(secret.count), message, message.count, &code, nil)
        return code
    }

    private func numbers(_ encoded: [UInt8]) -> [UInt8] {
        encoded.withUnsafeBufferPointer { bytes in
            var place = bytes.baseAddress
            guard let signature = d2i_ECDSA_SIG(nil, &place, encoded.count) else { return [] }
            defer { ECDSA_SIG_free(signature) }
            var numbers = [UInt8](repeating: 0, count: 64)
            numbers.withUnsafeMutableBufferPointer { numbers in
                guard let base = numbers.baseAddress else { return }
                BN_bn2binpad(ECDSA_SIG_get0_r(signature), base, 32)
                BN_bn2binpad(ECDSA_SIG_get0_s(signature), base + 32, 32)
            }
            return numbers
        }
    }
}

/// Base 64 for URLs without padding, written independently of the reader.
func base64URL(_ bytes: [UInt8]) -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    var text = ""
    for start in stride(from: 0, to: bytes.count, by: 3) {
        let group = bytes[start..<min(start + 3, bytes.count)]
        let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
        for place in 0...group.count { text.append(letters[bits >> (18 - 6 * place) & 63]) }
    }
    return text
}

extension TokenVerifier {
    /// The key of one service, and the policy.
    init(_ issuer: Issuer, _ policy: TokenPolicy = TokenPolicy()) throws {
        self.init(keys: KeySet([try issuer.verificationKey()]), policy: policy)
    }

    /// The refusal of a token at a time; `nil` when it is accepted.
    func refusal(_ token: [UInt8], now: Int64 = Issuer.now) -> TokenRefusal? {
        do throws(TokenRefusal) {
            _ = try verify(token, now: now)
            return nil
        } catch {
            return error
        }
    }
}
