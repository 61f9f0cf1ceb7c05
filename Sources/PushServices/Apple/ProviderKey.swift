import COpenSSL
import PlainText
import SystemFiles

/// The private key of a developer account (`.p8`), by which provider tokens are signed.
final class ProviderKey: Sendable {
    /// A file cannot be used. The description names it and the cure.
    struct Unusable: FileRefusal, Equatable {
        let description: String
        var isTransient = false
    }

    private let key: SigningKey

    private init(_ key: SigningKey) { self.key = key }

    /// Reads a PEM file with a P-256 key, which nobody but its owner and group may read.
    static func load(path: String) throws(Unusable) -> ProviderKey {
        var bytes = try SecretFile.read(path, expected: "a .p8 key file")
        defer { bytes.erase() }
        let shown = VisibleText.quoted(path)
        guard let key = SigningKey(pem: bytes) else {
            throw Unusable(
                description: """
                    \(shown) holds no private key. Give the AuthKey_….p8 file as Apple's developer \
                    site offers it
                    """)
        }
        guard key.isP256 else {
            throw Unusable(
                description: "\(shown) holds a key of another type; Apple's are for P-256 (ES256)")
        }
        return ProviderKey(key)
    }

    /// True when both are the same key.
    func equals(_ other: ProviderKey) -> Bool { key.equals(other.key) }

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
        guard let encoded = key.signature(of: message) else { return nil }
        return encoded.withUnsafeBufferPointer { bytes -> [UInt8]? in
            var place = bytes.baseAddress
            guard let signature = d2i_ECDSA_SIG(nil, &place, encoded.count) else { return nil }
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
