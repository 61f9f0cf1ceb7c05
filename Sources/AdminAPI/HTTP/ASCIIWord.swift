extension Collection<UInt8> {
    /// True when the bytes equal a lower-case ASCII word, ignoring case, as HTTP compares schemes
    /// and media types. Cheaper than a lower-case copy.
    func isWord(_ word: StaticString) -> Bool {
        word.withUTF8Buffer { wanted in
            guard count == wanted.count else { return false }
            return zip(self, wanted).allSatisfy { byte, other in
                (0x41...0x5A).contains(byte) ? byte | 0x20 == other : byte == other
            }
        }
    }
}

extension Sequence<UInt8> {
    /// The bytes with small letters for the capitals of ASCII; a host has no others.
    var lowercasedASCII: [UInt8] { map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 } }
}
