import TLS

/// The keys of both ends of a channel, and the peer's end.
struct RecordKeys {
    let version: SecureChannel.Version
    let algorithm: AEADAlgorithm
    let largestFragment: Int
    /// Records sealed earlier, in either direction.
    private let firstSequence: UInt64
    private var digest: KeyDigest { algorithm == .aes256GCM ? .sha384 : .sha256 }

    /// From a byte of a program.
    init(_ program: inout ByteProgram) {
        var bits = OperandBits(program.byte())
        version = bits.flag() ? .tls13 : .tls12
        algorithm = bits.pick([.aes128GCM, .aes256GCM, .chaCha20Poly1305, .aes128GCM])
        largestFragment = bits.flag() ? 512 : SecureChannel.largestPlaintext
        // Sequence numbers around a carry, around the first uncounted KeyUpdate and around the
        // required one.
        firstSequence = bits.pick([0, 254, 1_023, 1 << 24])
    }

    /// The model of the receiver.
    func model() -> RecordModel {
        RecordModel(version, largestFragment: largestFragment, sequence: firstSequence)
    }

    /// The end that is checked.
    func receiver() -> SecureChannel {
        SecureChannel(
            version, algorithm, digest, inbound: key(of: 1), outbound: key(of: 2),
            largestFragment: largestFragment)
    }

    /// The peer's end, with its first keys.
    func peer() -> SecureChannel {
        SecureChannel(
            version, algorithm, digest, inbound: key(of: 2), outbound: key(of: 1),
            largestFragment: largestFragment)
    }

    /// The secret of the peer's first key, in TLS 1.3.
    var peerSecret: [UInt8] { secret(of: 1) }

    /// The secret of the key that follows a KeyUpdate.
    func secret(after secret: [UInt8]) -> [UInt8] {
        digest.expandLabel(secret, "traffic upd", secret.count)
    }

    /// The peer's end after a KeyUpdate, for sealing.
    func peer(with secret: [UInt8]) -> SecureChannel {
        let key = TrafficKey(secret: secret, algorithm, digest, sequence: 0)
        return SecureChannel(version, algorithm, digest, inbound: key, outbound: key)
    }

    private func secret(of side: UInt8) -> [UInt8] {
        [UInt8](repeating: side, count: digest == .sha384 ? 48 : 32)
    }

    private func key(of side: UInt8) -> TrafficKey {
        guard version == .tls12 else {
            return TrafficKey(
                secret: secret(of: side), algorithm, digest, sequence: firstSequence)
        }
        let keyBytes = algorithm == .aes128GCM ? 16 : 32
        let ivBytes = algorithm == .chaCha20Poly1305 ? 12 : 4
        return TrafficKey(
            key: [UInt8](repeating: side, count: keyBytes)[...],
            iv: [UInt8](repeating: side, count: ivBytes)[...], sequence: firstSequence)
    }
}
