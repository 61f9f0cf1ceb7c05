extension Collection<UInt8> {
    /// True when these bytes are that word of ASCII without capitals, letters of either case alike, as
    /// HTTP compares schemes and media types. Far cheaper than a lower-case copy of a header's value.
    func isWord(_ word: StaticString) -> Bool {
        word.withUTF8Buffer { wanted in
            guard count == wanted.count else { return false }
            return zip(self, wanted).allSatisfy { byte, other in
                (0x41...0x5A).contains(byte) ? byte | 0x20 == other : byte == other
            }
        }
    }
}
