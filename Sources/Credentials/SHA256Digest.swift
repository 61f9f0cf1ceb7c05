import COpenSSL
import PlainText

/// A SHA-256 digest, of a secret that is random to begin with, or of what is no secret.
///
/// A token has 256 random bits, more than anybody can guess, so its digest needs neither salt nor the
/// slow hash that passwords need (``PasswordHash``).
package struct SHA256Digest: Hashable, Sendable {
    /// The number of digits of ``hexadecimal``.
    package static let hexadecimalCount = 64

    // Four words rather than an array: a digest is compared and copied without allocating. The first
    // byte of the digest is the highest of the first word.
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// The digest of some bytes.
    package init(of message: some Collection<UInt8>) {
        let message = Array(message)
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        let result = withUnsafeMutableBytes(of: &words) { target in
            SHA256(message, message.count, target.assumingMemoryBound(to: UInt8.self).baseAddress)
        }
        // Only OpenSSL's configuration can disable it, and TLS would not work then either.
        precondition(result != nil, "libcrypto has no SHA-256")
        self.words = (
            words.0.bigEndian, words.1.bigEndian, words.2.bigEndian, words.3.bigEndian
        )
    }

    /// Parses 64 lower-case hexadecimal digits; `nil` for anything else.
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
        [words.0, words.1, words.2, words.3].map { Hexadecimal.text(of: $0) }.joined()
    }

    /// The first 16 bytes, as a number.
    package var leading: UInt128 { UInt128(words.0) << 64 | UInt128(words.1) }

    /// Takes the same time wherever two digests differ.
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
