import COpenSSL
import SystemFiles

/// The key and nonce for the records of one direction of a connection.
public struct TrafficKey: BitwiseCopyable, Sendable {
    /// The traffic secret from which the next key is derived; used in TLS 1.3 only.
    private var secret = InlineArray<48, UInt8>(repeating: 0)
    private var key = InlineArray<32, UInt8>(repeating: 0)
    /// The nonce's fixed part: all 12 bytes. For AES in TLS 1.2 it is 4 bytes, behind which the
    /// explicit nonce of record 0 stands.
    private var iv = InlineArray<12, UInt8>(repeating: 0)
    /// Number of records so far.
    var sequence: UInt64 = 0
    /// Identifies this key in the shared cipher contexts; 0 until its first use.
    var number: UInt64 = 0

    /// A key from a TLS 1.2 handshake, after `sequence` records. With AES, `firstNonce` is the
    /// explicit nonce of record 0.
    package init(
        key: ArraySlice<UInt8>, iv: ArraySlice<UInt8>, firstNonce: [UInt8] = [], sequence: UInt64
    ) {
        precondition(key.count <= 32 && iv.count <= 12, "a key of \(key.count) bytes")
        for (index, byte) in key.enumerated() { self.key[index] = byte }
        for (index, byte) in iv.enumerated() { self.iv[index] = byte }
        for (index, byte) in firstNonce.enumerated() { self.iv[Self.saltBytes + index] = byte }
        self.sequence = sequence
    }

    /// The key and nonce of a TLS 1.3 traffic secret (RFC 8446, section 7.3), after `sequence`
    /// records.
    package init(
        secret: [UInt8], _ algorithm: AEADAlgorithm, _ digest: KeyDigest, sequence: UInt64
    ) {
        precondition(secret.count == digest.byteCount, "a secret of \(secret.count) bytes")
        var key = digest.expandLabel(secret, "key", algorithm.keyBytes)
        var iv = digest.expandLabel(secret, "iv", AEADAlgorithm.nonceBytes)
        self.init(key: key[...], iv: iv[...], sequence: sequence)
        key.erase()
        iv.erase()
        for (index, byte) in secret.enumerated() { self.secret[index] = byte }
    }

    /// The key that follows a KeyUpdate (RFC 8446, section 7.2); it counts its records from 0.
    func next(_ algorithm: AEADAlgorithm, _ digest: KeyDigest) -> TrafficKey {
        var current = (0..<digest.byteCount).map { secret[$0] }
        var following = digest.expandLabel(current, "traffic upd", digest.byteCount)
        defer {
            current.erase()
            following.erase()
        }
        return TrafficKey(secret: following, algorithm, digest, sequence: 0)
    }

    /// The nonce of the next record: the fixed part combined with the sequence number by exclusive
    /// or.
    var nonce: InlineArray<12, UInt8> {
        var nonce = iv
        var number = sequence
        var index = 11
        while number > 0 {
            nonce[index] ^= UInt8(truncatingIfNeeded: number)
            number >>= 8
            index -= 1
        }
        return nonce
    }

    // MARK: Nonces of AES in TLS 1.2 (RFC 5288, section 3)

    /// Bytes of the nonce that each record carries.
    static var explicitNonceBytes: Int { 8 }
    private static var saltBytes: Int { 4 }

    /// The explicit nonce of the next record, as its bytes lie in memory. It counts on from that of
    /// record 0, so that none comes twice.
    var nextExplicitNonce: UInt64 {
        let first = withUnsafeBytes(of: iv) {
            $0.loadUnaligned(fromByteOffset: Self.saltBytes, as: UInt64.self)
        }
        return (UInt64(bigEndian: first) &+ sequence).bigEndian
    }

    /// The nonce of a record that carries `explicit`.
    func nonce(explicit: UInt64) -> InlineArray<12, UInt8> {
        var nonce = iv
        withUnsafeMutableBytes(of: &nonce) {
            $0.storeBytes(of: explicit, toByteOffset: Self.saltBytes, as: UInt64.self)
        }
        return nonce
    }

    mutating func erase() {
        withUnsafeMutableBytes(of: &secret) { OPENSSL_cleanse($0.baseAddress, $0.count) }
        withUnsafeMutableBytes(of: &key) { OPENSSL_cleanse($0.baseAddress, $0.count) }
        withUnsafeMutableBytes(of: &iv) { OPENSSL_cleanse($0.baseAddress, $0.count) }
    }

    func withKey<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
        withUnsafeBytes(of: key) { bytes in
            guard let base = bytes.baseAddress else { preconditionFailure("a key of no bytes") }
            return body(base.assumingMemoryBound(to: UInt8.self))
        }
    }
}

/// The digest of a cipher suite, which derives its keys.
public enum KeyDigest: UInt8, Sendable, BitwiseCopyable {
    case sha256, sha384

    var byteCount: Int {
        switch self {
        case .sha256: 32
        case .sha384: 48
        }
    }

    /// HKDF-Expand-Label with an empty context (RFC 8446, section 7.1), for at most a digest's bytes.
    package func expandLabel(_ secret: [UInt8], _ label: String, _ count: Int) -> [UInt8] {
        precondition(count <= byteCount, "\(count) bytes of \(self)")
        let label = [UInt8]("tls13 \(label)".utf8)
        // Length, label, an empty context, and the counter of HKDF-Expand's only block.
        let info: [UInt8] = [0, UInt8(count), UInt8(label.count)] + label + [0, 1]
        var block = authenticate(info, key: secret)
        defer { block.erase() }
        return Array(block[..<count])
    }

    /// The pseudorandom function of TLS 1.2 (RFC 5246, section 5).
    func expand(_ secret: [UInt8], _ label: String, seed: [UInt8], _ count: Int) -> [UInt8] {
        let seed = [UInt8](label.utf8) + seed
        var result: [UInt8] = []
        // Reserved, so that it grows in place and leaves no copy behind.
        result.reserveCapacity(count + byteCount)
        var block = seed
        while result.count < count {
            block = authenticate(block, key: secret)
            var part = authenticate(block + seed, key: secret)
            result += part
            part.erase()
        }
        defer { result.erase() }
        return Array(result[..<count])
    }

    private func authenticate(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        let template =
            switch self {
            case .sha256: Self.sha256HMAC
            case .sha384: Self.sha384HMAC
            }
        var result = [UInt8](repeating: 0, count: byteCount)
        var count = 0
        let mac = EVP_MAC_CTX_dup(template)
        defer { EVP_MAC_CTX_free(mac) }
        let isMade =
            EVP_MAC_init(mac, key, key.count, nil) == 1
            && EVP_MAC_update(mac, bytes, bytes.count) == 1
            && EVP_MAC_final(mac, &result, &count, result.count) == 1
        precondition(isMade && count == byteCount, "OpenSSL gave no HMAC with \(self)")
        return result
    }

    // Copied for each use and never changed. Looking an algorithm up costs more than using it.
    nonisolated(unsafe) private static let sha256HMAC = hermes_hmac_template("SHA256")
    nonisolated(unsafe) private static let sha384HMAC = hermes_hmac_template("SHA384")
}
