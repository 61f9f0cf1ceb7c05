import COpenSSL

/// The ciphers that a handshake can agree on. Each encrypts and authenticates in one step.
public enum AEADAlgorithm: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    case aes128GCM, aes256GCM, chaCha20Poly1305

    /// Size of the key.
    var keyBytes: Int {
        switch self {
        case .aes128GCM: 16
        case .aes256GCM, .chaCha20Poly1305: 32
        }
    }

    /// Size of the nonce. TLS 1.3 sends no part of it.
    static var nonceBytes: Int { 12 }
    /// Size of the tag that authenticates a record.
    static var tagBytes: Int { 16 }

    /// The cipher's name in OpenSSL.
    var name: String {
        switch self {
        case .aes128GCM: "AES-128-GCM"
        case .aes256GCM: "AES-256-GCM"
        case .chaCha20Poly1305: "ChaCha20-Poly1305"
        }
    }

    /// The cipher with this OpenSSL number; `nil` for one that Hermes does not offer.
    init?(nid: CInt) {
        switch nid {
        case NID_aes_128_gcm: self = .aes128GCM
        case NID_aes_256_gcm: self = .aes256GCM
        case NID_chacha20_poly1305: self = .chaCha20Poly1305
        default: return nil
        }
    }
}
