/// Hashes byte strings under a secret, so that clients cannot choose topics or identifiers that
/// collide.
///
/// Each step takes eight bytes and folds them by a full-width multiplication. The constants are the
/// fractional bits of square roots of primes. The hash is not cryptographic: the secret is drawn
/// per process, and no peer ever sees a hash.
public struct KeyedHash: Sendable, BitwiseCopyable {
    let seed: UInt64

    public init(seed: UInt64) {
        self.seed = seed ^ 0x6A09_E667_F3BC_C908
    }

    public func callAsFunction(_ bytes: UnsafeRawBufferPointer, salt: UInt64 = 0) -> UInt64 {
        var state = Self.fold(seed ^ salt, 0xBB67_AE85_84CA_A73B ^ UInt64(bytes.count))
        guard let base = bytes.baseAddress else { return state }
        let count = bytes.count
        guard count >= 8 else { return Self.fold(state ^ Self.short(base, count), Self.last) }
        var offset = 0
        while offset + 8 < count {
            let word = base.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            state = Self.fold(state ^ word, 0x3C6E_F372_FE94_F82B)
            offset += 8
        }
        // The last word may overlap the one before: cheaper than a loop over single bytes.
        let word = base.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
        return Self.fold(state ^ word, Self.last)
    }

    private static var last: UInt64 { 0xA54F_F53A_5F1D_36F1 }

    /// Packs up to seven bytes into one word. Their number need not be in the word, since the hash
    /// begins with it.
    private static func short(_ base: UnsafeRawPointer, _ count: Int) -> UInt64 {
        var word: UInt64 = 0
        for offset in 0..<count {
            word = word << 8 | UInt64(base.load(fromByteOffset: offset, as: UInt8.self))
        }
        return word
    }

    static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}
