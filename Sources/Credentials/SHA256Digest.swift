/// SHA-256 of FIPS 180-4, for secrets that are random to begin with.
///
/// A token has 256 random bits: nobody can go through them, so what is kept of one needs neither salt
/// nor a slow hash, as passwords do (``PasswordHash``). It costs less than a microsecond a request.
package struct SHA256Digest: Hashable, Sendable {
    /// How many hexadecimal digits ``hexadecimal`` has.
    package static let hexadecimalCount = 64

    // Four words rather than an array: a digest is compared and copied without allocating.
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// The digest of some bytes.
    package init(of message: some Collection<UInt8>) {
        var state = Self.initialState
        var schedule = [UInt32](repeating: 0, count: 64)
        let blocks = Self.padded(message)
        for start in stride(from: 0, to: blocks.count, by: Self.blockSize) {
            Self.compress(blocks[start..<start + Self.blockSize], &schedule, into: &state)
        }
        func word(_ index: Int) -> UInt64 { UInt64(state[index]) << 32 | UInt64(state[index + 1]) }
        words = (word(0), word(2), word(4), word(6))
    }

    /// Reads 64 lower-case hexadecimal digits; `nil` for anything else.
    package init?(hexadecimal text: some Collection<UInt8>) {
        guard text.count == Self.hexadecimalCount else { return nil }
        var words = [UInt64](repeating: 0, count: 4)
        for (index, digit) in text.enumerated() {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
            default: return nil
            }
            words[index / 16] = words[index / 16] << 4 | UInt64(value)
        }
        self.words = (words[0], words[1], words[2], words[3])
    }

    /// 64 lower-case digits.
    package var hexadecimal: String {
        [words.0, words.1, words.2, words.3].map { word in
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// Takes equally long wherever the two differ.
    package static func == (left: Self, right: Self) -> Bool {
        (left.words.0 ^ right.words.0) | (left.words.1 ^ right.words.1)
            | (left.words.2 ^ right.words.2) | (left.words.3 ^ right.words.3) == 0
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
    }
}

extension SHA256Digest {
    private static let blockSize = 64

    /// The message, a one bit, zeros, and its length in bits: whole blocks (section 5.1.1).
    private static func padded(_ message: some Collection<UInt8>) -> [UInt8] {
        var bytes = Array(message)
        let bitCount = UInt64(bytes.count) * 8
        bytes.append(0x80)
        while bytes.count % blockSize != blockSize - 8 { bytes.append(0) }
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: bitCount >> UInt64(shift)))
        }
        return bytes
    }

    /// One round over a block of 64 bytes (section 6.2.2).
    private static func compress(
        _ block: ArraySlice<UInt8>, _ schedule: inout [UInt32], into state: inout [UInt32]
    ) {
        for index in 0..<16 {
            let start = block.startIndex + 4 * index
            schedule[index] = block[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) }
        }
        for index in 16..<64 {
            let (early, late) = (schedule[index - 15], schedule[index - 2])
            let small0 = rotated(early, 7) ^ rotated(early, 18) ^ early >> 3
            let small1 = rotated(late, 17) ^ rotated(late, 19) ^ late >> 10
            schedule[index] = schedule[index - 16] &+ small0 &+ schedule[index - 7] &+ small1
        }
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        for index in 0..<64 {
            let big1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
            let choice = (e & f) ^ (~e & g)
            let first = h &+ big1 &+ choice &+ constants[index] &+ schedule[index]
            let big0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)
            let majority = (a & b) ^ (a & c) ^ (b & c)
            (h, g, f, e) = (g, f, e, d &+ first)
            (d, c, b, a) = (c, b, a, first &+ big0 &+ majority)
        }
        for (index, value) in [a, b, c, d, e, f, g, h].enumerated() { state[index] &+= value }
    }

    private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 {
        word >> count | word << (32 - count)
    }

    /// Fractional parts of the square roots of the first 8 primes (section 5.3.3).
    private static let initialState: [UInt32] = [
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a,
        0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
    ]

    /// Fractional parts of the cube roots of the first 64 primes (section 4.2.2).
    private static let constants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1,
        0x923f_82a4, 0xab1c_5ed5, 0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3,
        0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174, 0xe49b_69c1, 0xefbe_4786,
        0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147,
        0x06ca_6351, 0x1429_2967, 0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13,
        0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85, 0xa2bf_e8a1, 0xa81a_664b,
        0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a,
        0x5b9c_ca4f, 0x682e_6ff3, 0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208,
        0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ]
}
