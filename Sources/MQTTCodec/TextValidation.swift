/// Checks strings and topics: ASCII eight bytes per step, other characters one by one.
public enum TextValidation {
    static var highBits: UInt64 { 0x8080_8080_8080_8080 }
    static var lowBits: UInt64 { 0x0101_0101_0101_0101 }

    /// True if a byte of `word` is 0. Exact when all bytes are below 0x80; otherwise only `false`
    /// is certain.
    static func hasZero(_ word: UInt64) -> Bool { (word &- lowBits) & ~word & highBits != 0 }

    /// True if a byte of `word` is `byte`; as exact as ``hasZero(_:)``.
    static func has(_ byte: UInt8, in word: UInt64) -> Bool {
        hasZero(word ^ (lowBits &* UInt64(byte)))
    }

    /// Checks a string: well-formed UTF-8 [MQTT-1.5.3-1] without U+0000 [MQTT-1.5.3-2].
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

    /// True if all eight bytes are ASCII and none is U+0000, `+` or `#`.
    static func isPlain(_ word: UInt64) -> Bool {
        word & highBits == 0 && !hasZero(word) && !has(0x2B, in: word) && !has(0x23, in: word)
    }

    /// Checks a topic name: a string of at least one character [MQTT-4.7.3-1] without wildcards
    /// [MQTT-3.3.2-2].
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

    /// Checks a topic filter: wildcards may stand only where sections 4.7.1.2 and 4.7.1.3 allow
    /// them.
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
                // `#` is the last character, alone or behind a separator [MQTT-4.7.1-2].
                guard startsLevel, isLast else { throw .misplacedMultiLevelWildcard }
            } else {
                // `+` is a whole level [MQTT-4.7.1-3].
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

    /// Returns the offset behind one character beyond ASCII. Throws for overlong forms, surrogates
    /// and anything above U+10FFFF (Unicode 15, table 3-7).
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

/// A checked topic name: 1 to 65,535 bytes without wildcards.
public struct TopicName: Hashable, Sendable, BitwiseCopyable {
    public let range: ByteRange

    public init(validating range: ByteRange, in bytes: RawSpan) throws(MalformedPacket) {
        try TextValidation.checkTopicName(bytes, range)
        self.range = range
    }
}

/// A checked topic filter: 1 to 65,535 bytes.
public struct TopicFilter: Hashable, Sendable, BitwiseCopyable {
    public let range: ByteRange

    public init(validating range: ByteRange, in bytes: RawSpan) throws(MalformedPacket) {
        try TextValidation.checkTopicFilter(bytes, range)
        self.range = range
    }
}
