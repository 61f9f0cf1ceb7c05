/// A UUID in its usual form, 8-4-4-4-12 small hexadecimal digits (RFC 9562, section 4).
package enum UUIDText {
    /// The length of the form in bytes.
    package static let length = 36

    package static func text(high: UInt64, low: UInt64) -> String {
        String(unsafeUninitializedCapacity: length) { text in
            var place = 0
            forEachByte(high, low) { byte in
                text[place] = byte
                place += 1
            }
            return place
        }
    }

    /// Calls `body` with each byte of the form.
    @inline(__always)
    package static func forEachByte(_ high: UInt64, _ low: UInt64, _ body: (UInt8) -> Void) {
        for index in 0..<32 {
            if index == 8 || index == 12 || index == 16 || index == 20 { body(UInt8(ascii: "-")) }
            let half = index < 16 ? high : low
            body(
                Hexadecimal.digit(UInt8(truncatingIfNeeded: half >> (60 - 4 * UInt64(index & 15)))))
        }
    }
}
