/// CRC-32C (Castagnoli): polynomial 0x1EDC6F41, reflected; RFC 3720, appendix B.4 has test vectors.
///
/// A table and no instruction of the processor: the log of a phone takes a few records a second.
enum Checksum {
    private static let table: [UInt32] = (0..<256).map { index in
        var value = UInt32(index)
        for _ in 0..<8 { value = value & 1 == 1 ? value >> 1 ^ 0x82F6_3B78 : value >> 1 }
        return value
    }

    /// The checksum of `bytes`, behind those whose checksum is `sum`.
    static func crc32c(
        _ bytes: some Collection<UInt8>, continuing sum: UInt32 = 0
    ) -> UInt32 {
        table.withUnsafeBufferPointer { table in
            ~bytes.reduce(~sum) { value, byte in
                value >> 8 ^ table[Int(UInt8(truncatingIfNeeded: value) ^ byte)]
            }
        }
    }
}
