/// Checks of strings and topics, eight ASCII bytes per step and character by character beyond ASCII.
public enum TextValidation {
    static var highBits: UInt64 { 0x8080_8080_8080_8080 }
    static var lowBits: UInt64 { 0x0101_0101_0101_0101 }

    /// Whether any byte of `word` is 0 (exact while all bytes are below 0x80 or the answer is "none").
    static func hasZero(_ word: UInt64) -> Bool { (word &- lowBits) & ~word & highBits != 0 }

    static func has(_ byte: UInt8, in word: UInt64) -> Bool {
        hasZero(word ^ (lowBits &* UInt64(byte)))
    }

    /// Well-formed UTF-8 [MQTT-1.5.3-1] without U+0000 [MQTT-1.5.3-2].
    ///
    /// U+FEFF, non-characters and control characters pass [MQTT-1.5.3-3].
    public static func checkString(
        _ bytes: RawSpan, _ range: ByteRange
    ) throws(MalformedPacket) {
        var offset = range.start
        while offset + 8 <= range.end {
            let word = bytes.word(at: offset)
            if word & highBits != 0 || hasZero(word) { break }
            offset += 8
        }
        try checkCharacters(bytes, from: offset, to: range.end)
    }

    /// Eight ASCII characters without U+0000 and wildcards.
    static func isPlain(_ word: UInt64) -> Bool {
        word & highBits == 0 && !hasZero(word) && !has(0x2B, in: word) && !has(0x23, in: word)
    }

    /// A topic name: a string of at least one character [MQTT-4.7.3-1] and no wildcard [MQTT-3.3.2-2].
    public static func checkTopicName(
        _ bytes: RawSpan, _ range: ByteRange
    ) throws(MalformedPacket) {
        guard !range.isEmpty else { throw .emptyTopic }
        var offset = range.start
        while offset + 8 <= range.end {
            let word = bytes.word(at: offset)
            if !isPlain(word) { break }
            offset += 8
            // The last word overlaps the one before: cheaper than single bytes.
            if offset < range.end, offset + 8 > range.end { offset = range.end - 8 }
        }
        while offset < range.end {
            let byte = bytes.byte(at: offset)
            if byte == 0x2B || byte == 0x23 { throw .wildcardInTopicName }
            if byte == 0 { throw .nullCharacter }
            offset =
                byte < 0x80 ? offset + 1 : try afterCharacter(bytes, at: offset, end: range.end)
        }
    }

    /// A topic filter: wildcards stand where sections 4.7.1.2 and 4.7.1.3 allow them.
    public static func checkTopicFilter(
        _ bytes: RawSpan, _ range: ByteRange
    ) throws(MalformedPacket) {
        guard !range.isEmpty else { throw .emptyTopic }
        try checkString(bytes, range)
        for offset in range.start..<range.end {
            let byte = bytes.byte(at: offset)
            guard byte == 0x2B || byte == 0x23 else { continue }
            let startsLevel = offset == range.start || bytes.byte(at: offset - 1) == 0x2F
            let isLast = offset + 1 == range.end
            if byte == 0x23 {
                // The last character, alone or after a separator [MQTT-4.7.1-2].
                guard startsLevel, isLast else { throw .misplacedMultiLevelWildcard }
            } else {
                // A whole level [MQTT-4.7.1-3].
                guard startsLevel, isLast || bytes.byte(at: offset + 1) == 0x2F else {
                    throw .misplacedSingleLevelWildcard
                }
            }
        }
    }

    static func checkCharacters(
        _ bytes: RawSpan, from start: Int, to end: Int
    ) throws(MalformedPacket) {
        var offset = start
        while offset < end {
            let byte = bytes.byte(at: offset)
            if byte == 0 { throw .nullCharacter }
            offset = byte < 0x80 ? offset + 1 : try afterCharacter(bytes, at: offset, end: end)
        }
    }

    /// Steps over one character beyond ASCII (Unicode 15, table 3-7: no overlong form, no surrogate,
    /// nothing above U+10FFFF).
    static func afterCharacter(
        _ bytes: RawSpan, at offset: Int, end: Int
    ) throws(MalformedPacket) -> Int {
        let first = bytes.byte(at: offset)
        let continuation: (count: Int, secondRange: ClosedRange<UInt8>)
        switch first {
        case 0xC2...0xDF: continuation = (1, 0x80...0xBF)
        case 0xE0: continuation = (2, 0xA0...0xBF)
        case 0xED: continuation = (2, 0x80...0x9F)
        case 0xE1...0xEF: continuation = (2, 0x80...0xBF)
        case 0xF0: continuation = (3, 0x90...0xBF)
        case 0xF1...0xF3: continuation = (3, 0x80...0xBF)
        case 0xF4: continuation = (3, 0x80...0x8F)
        default: throw .illFormedString
        }
        guard offset + continuation.count < end,
            continuation.secondRange.contains(bytes.byte(at: offset + 1))
        else { throw .illFormedString }
        for later in 2..<max(2, continuation.count + 1) {
            guard bytes.byte(at: offset + later) & 0xC0 == 0x80 else { throw .illFormedString }
        }
        return offset + continuation.count + 1
    }
}

/// A topic name whose bytes were checked; without wildcards, 1 to 65,535 bytes.
public struct TopicName: Hashable, Sendable, BitwiseCopyable {
    public let range: ByteRange

    public init(validating range: ByteRange, in bytes: RawSpan) throws(MalformedPacket) {
        try TextValidation.checkTopicName(bytes, range)
        self.range = range
    }
}

/// A topic filter whose bytes were checked; 1 to 65,535 bytes.
public struct TopicFilter: Hashable, Sendable, BitwiseCopyable {
    public let range: ByteRange

    public init(validating range: ByteRange, in bytes: RawSpan) throws(MalformedPacket) {
        try TextValidation.checkTopicFilter(bytes, range)
        self.range = range
    }
}
