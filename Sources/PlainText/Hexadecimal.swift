/// Numbers and bytes in small hexadecimal digits, with their leading zeros.
package enum Hexadecimal {
    /// The digit of the lowest four bits.
    package static func digit(_ value: UInt8) -> UInt8 {
        let value = value & 0xF
        return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    /// Two digits a byte.
    package static func text(of bytes: some Collection<UInt8>) -> String {
        String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
            var place = 0
            for byte in bytes {
                text[place] = digit(byte >> 4)
                text[place + 1] = digit(byte)
                place += 2
            }
            return place
        }
    }

    /// 16 digits.
    package static func text(of word: UInt64) -> String {
        String(unsafeUninitializedCapacity: 16) { text in
            for place in 0..<16 {
                text[place] = digit(UInt8(truncatingIfNeeded: word >> (60 - 4 * UInt64(place))))
            }
            return 16
        }
    }
}
