/// SHA-1 (FIPS 180-4), for the answer to a WebSocket request (RFC 6455, section 4.2.2) alone.
///
/// It proves there that the other end speaks WebSocket, not who it is: what SHA-1 lacks today does
/// not matter.
enum SHA1 {
    private static let blockByteCount = 64

    /// The 20 bytes of the digest.
    static func hash(_ message: [UInt8]) -> [UInt8] {
        // The end is marked by one bit, and the last 8 bytes of the last block count the bits.
        var padded = message + [0x80]
        while padded.count % blockByteCount != blockByteCount - 8 { padded.append(0) }
        let bitCount = UInt64(message.count) * 8
        for shift in stride(from: 56, through: 0, by: -8) {
            padded.append(UInt8(truncatingIfNeeded: bitCount >> UInt64(shift)))
        }

        var digest: [UInt32] = [
            0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0,
        ]
        for block in stride(from: 0, to: padded.count, by: blockByteCount) {
            add(padded[block..<block + blockByteCount], to: &digest)
        }
        return digest.flatMap { word in
            [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> UInt32($0)) }
        }
    }

    private static func add(_ block: ArraySlice<UInt8>, to digest: inout [UInt32]) {
        var words = stride(from: block.startIndex, to: block.endIndex, by: 4).map { at in
            block[at..<at + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        for index in words.count..<80 {
            words.append(
                rotated(
                    words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1))
        }
        var (a, b, c, d, e) = (digest[0], digest[1], digest[2], digest[3], digest[4])
        for (index, word) in words.enumerated() {
            let (mixed, constant): (UInt32, UInt32) =
                switch index {
                case ..<20: ((b & c) | (~b & d), 0x5a82_7999)
                case ..<40: (b ^ c ^ d, 0x6ed9_eba1)
                case ..<60: ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc)
                default: (b ^ c ^ d, 0xca62_c1d6)
                }
            let next = rotated(a, 5) &+ mixed &+ e &+ constant &+ word
            (a, b, c, d, e) = (next, a, rotated(b, 30), c, d)
        }
        for (index, value) in [a, b, c, d, e].enumerated() { digest[index] &+= value }
    }

    private static func rotated(_ word: UInt32, _ bits: UInt32) -> UInt32 {
        word << bits | word >> (32 - bits)
    }
}
