/// Hashes byte strings under a secret, so that clients cannot choose topics or identifiers that collide.
///
/// Eight bytes per step, folded by a full-width multiplication; the constants are the fractional
/// bits of square roots of primes. Not cryptographic: the secret is drawn per process and the hash
/// is never shown to a peer.
package struct KeyedHash: Sendable, BitwiseCopyable {
    let seed: UInt64

    package init(seed: UInt64) {
        self.seed = seed ^ 0x6A09_E667_F3BC_C908
    }

    package func callAsFunction(_ bytes: UnsafeRawBufferPointer, salt: UInt64 = 0) -> UInt64 {
        var state = Self.fold(seed ^ salt, 0xBB67_AE85_84CA_A73B ^ UInt64(bytes.count))
        guard let base = bytes.baseAddress else { return state }
        var offset = 0
        while offset + 8 <= bytes.count {
            let word = base.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            state = Self.fold(state ^ word, 0x3C6E_F372_FE94_F82B)
            offset += 8
        }
        var tail: UInt64 = 0
        var shift: UInt64 = 0
        while offset < bytes.count {
            tail |= UInt64(base.load(fromByteOffset: offset, as: UInt8.self)) << shift
            shift += 8
            offset += 1
        }
        return Self.fold(state ^ tail, 0xA54F_F53A_5F1D_36F1)
    }

    static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}
