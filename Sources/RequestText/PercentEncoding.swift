/// Percent-encodes all bytes but letters, digits, `-`, `.`, `_` and `~` (RFC 3986, section 2.3), so
/// that the result is one visible word of ASCII. ``percentDecoded(_:)`` reads it back.
package func percentEncoded(_ bytes: some Sequence<UInt8>) -> String {
    var result = ""
    for byte in bytes {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"):
            result.unicodeScalars.append(Unicode.Scalar(byte))
        default:
            let digits = String(byte, radix: 16, uppercase: true)
            result += digits.utf8.count == 1 ? "%0\(digits)" : "%\(digits)"
        }
    }
    return result
}
