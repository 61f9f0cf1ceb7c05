import COpenSSL

/// A login service with a key of one algorithm, which signs tokens.
final class Signer {
    let algorithm: String
    private let key: OpaquePointer?
    private let secret = Array("0123456789abcdef0123456789abcdef".utf8)

    /// `nil` for an algorithm that is not known.
    init?(_ algorithm: String) {
        self.algorithm = algorithm
        let type: String
        switch algorithm {
        case "HS256":
            key = nil
            return
        case "RS256": type = "RSA"
        case "ES256": type = "EC"
        case "EdDSA": type = "ED25519"
        default: return nil
        }
        guard let context = EVP_PKEY_CTX_new_from_name(nil, type, nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var made: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1 else { return nil }
        if type == "RSA" { EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2_048) }
        if type == "EC" { EVP_PKEY_CTX_set_group_name(context, "P-256") }
        guard EVP_PKEY_keygen(context, &made) == 1 else { return nil }
        key = made
    }

    deinit { EVP_PKEY_free(key) }

    /// The public key as a file holds it: PEM, or the secret.
    var file: [UInt8] {
        guard let key, let bio = BIO_new(BIO_s_mem()) else { return secret }
        defer { BIO_free(bio) }
        PEM_write_bio_PUBKEY(bio, key)
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = BIO_read(bio, &bytes, CInt(bytes.count))
        return Array(bytes.prefix(Int(max(0, count))))
    }

    /// A token with the size of everyday ones, whose user has this number.
    func token(_ number: Int) -> [UInt8] {
        let header = #"{"alg":"\#(algorithm)","typ":"JWT","kid":"2026-11"}"#
        let claims = #"""
            {"iss":"https://login.example","aud":"hermes","sub":"user-\#(number)","iat":1800000000,\#
            "exp":1800003600,"publish":["up/%u"],"subscribe":["orders/%u/#","news/#"]}
            """#
        let signed = "\(Self.base64URL(Array(header.utf8))).\(Self.base64URL(Array(claims.utf8)))"
        return Array("\(signed).\(Self.base64URL(sign(Array(signed.utf8))))".utf8)
    }

    private func sign(_ message: [UInt8]) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 512)
        guard let key else {
            HMAC(EVP_sha256(), secret, CInt(secret.count), message, message.count, &bytes, nil)
            return Array(bytes.prefix(32))
        }
        guard let context = EVP_MD_CTX_new() else { return [] }
        defer { EVP_MD_CTX_free(context) }
        var count = bytes.count
        EVP_DigestSignInit(context, nil, algorithm == "EdDSA" ? nil : EVP_sha256(), nil, key)
        EVP_DigestSign(context, &bytes, &count, message, message.count)
        guard algorithm == "ES256" else { return Array(bytes.prefix(count)) }
        return bytes.withUnsafeBufferPointer { bytes in
            var place = bytes.baseAddress
            var numbers = [UInt8](repeating: 0, count: 64)
            guard let signature = d2i_ECDSA_SIG(nil, &place, count) else { return numbers }
            defer { ECDSA_SIG_free(signature) }
            numbers.withUnsafeMutableBufferPointer { numbers in
                guard let base = numbers.baseAddress else { return }
                BN_bn2binpad(ECDSA_SIG_get0_r(signature), base, 32)
                BN_bn2binpad(ECDSA_SIG_get0_s(signature), base + 32, 32)
            }
            return numbers
        }
    }

    private static func base64URL(_ bytes: [UInt8]) -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for place in 0...group.count { text.append(letters[bits >> (18 - 6 * place) & 63]) }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
