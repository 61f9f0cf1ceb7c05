import Testing

@testable import TLS

/// A version of TLS and a cipher, for which a test makes both ends of a connection.
struct RecordKind: Sendable, CustomTestStringConvertible {
    static let all = tls12 + tls13
    static let tls12 = AEADAlgorithm.allCases.map { RecordKind(version: .tls12, algorithm: $0) }
    static let tls13 = AEADAlgorithm.allCases.map { RecordKind(version: .tls13, algorithm: $0) }

    var version: SecureChannel.Version
    var algorithm: AEADAlgorithm
    var testDescription: String { "\(version) \(algorithm)" }

    var digest: KeyDigest { algorithm == .aes256GCM ? .sha384 : .sha256 }

    /// Our end, and the peer's, which has the same keys exchanged.
    func pair(
        largestFragment: Int = SecureChannel.largestPlaintext
    ) -> (SecureChannel, SecureChannel) {
        let (first, second) = (key(1), key(2))
        return (
            SecureChannel(
                version, algorithm, digest, inbound: first, outbound: second,
                largestFragment: largestFragment),
            SecureChannel(version, algorithm, digest, inbound: second, outbound: first)
        )
    }

    /// A key whose secret bytes are all `byte`.
    private func key(_ byte: UInt8) -> TrafficKey {
        switch version {
        case .tls13:
            return TrafficKey(
                secret: [UInt8](repeating: byte, count: digest.byteCount), algorithm, digest,
                sequence: 0)
        case .tls12:
            let ivBytes = algorithm == .chaCha20Poly1305 ? 12 : 4
            return TrafficKey(
                key: [UInt8](repeating: byte, count: algorithm.keyBytes)[...],
                iv: [UInt8](repeating: byte, count: ivBytes)[...], sequence: 1)
        }
    }
}
