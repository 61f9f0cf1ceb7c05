import COpenSSL

/// The ciphers that a connection may end up with: each seals and authenticates in one step.
public enum AEADAlgorithm: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    case aes128GCM, aes256GCM, chaCha20Poly1305

    /// Bytes of its key.
    var keyBytes: Int {
        switch self {
        case .aes128GCM: 16
        case .aes256GCM, .chaCha20Poly1305: 32
        }
    }

    /// Bytes of the nonce, which is never sent whole.
    static var nonceBytes: Int { 12 }
    /// Bytes that authenticate a record.
    static var tagBytes: Int { 16 }

    /// OpenSSL's name for it.
    var name: String {
        switch self {
        case .aes128GCM: "AES-128-GCM"
        case .aes256GCM: "AES-256-GCM"
        case .chaCha20Poly1305: "ChaCha20-Poly1305"
        }
    }

    /// By OpenSSL's number for the cipher of a suite; `nil` for one that we do not offer.
    init?(nid: CInt) {
        switch nid {
        case NID_aes_128_gcm: self = .aes128GCM
        case NID_aes_256_gcm: self = .aes256GCM
        case NID_chacha20_poly1305: self = .chaCha20Poly1305
        default: return nil
        }
    }
}
