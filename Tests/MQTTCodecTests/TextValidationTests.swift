import HermesTesting
import MQTTCodec
import Testing

/// A byte-by-byte reference for the code that checks eight bytes at a time.
private enum Reference {
    static func string(_ bytes: [UInt8]) -> Set<MalformedPacket> {
        var broken: Set<MalformedPacket> = []
        if String(validating: bytes, as: UTF8.self) == nil { broken.insert(.illFormedString) }
        if bytes.contains(0) { broken.insert(.nullCharacter) }
        return broken
    }

    static func topicName(_ bytes: [UInt8]) -> Set<MalformedPacket> {
        guard !bytes.isEmpty else { return [.emptyTopic] }
        var broken = string(bytes)
        if bytes.contains(0x2B) || bytes.contains(0x23) { broken.insert(.wildcardInTopicName) }
        return broken
    }

    static func topicFilter(_ bytes: [UInt8]) -> Set<MalformedPacket> {
        guard !bytes.isEmpty else { return [.emptyTopic] }
        var broken = string(bytes)
        let levels = bytes.split(separator: 0x2F, omittingEmptySubsequences: false)
        for (index, level) in levels.enumerated() {
            if level.contains(0x23), level.count > 1 || index < levels.count - 1 {
                broken.insert(.misplacedMultiLevelWildcard)
            }
            if level.contains(0x2B), level.count > 1 {
                broken.insert(.misplacedSingleLevelWildcard)
            }
        }
        return broken
    }
}

@Suite("Text validation")
struct TextValidationTests {
    /// Compares all three checks of `text`, placed at `offset` among invalid bytes.
    private func compare(_ text: [UInt8], at offset: Int, _ comment: Comment) {
        let bytes =
            [UInt8](repeating: 0x00, count: offset) + text + [UInt8](repeating: 0x23, count: 9)
        let range = ByteRange(offset: offset, count: text.count)
        expect(Reference.string(text), comment) { () throws(MalformedPacket) in
            try TextValidation.checkString(bytes.span.bytes, range)
        }
        expect(Reference.topicName(text), comment) { () throws(MalformedPacket) in
            #expect(try TopicName(validating: range, in: bytes.span.bytes).range == range)
        }
        expect(Reference.topicFilter(text), comment) { () throws(MalformedPacket) in
            #expect(try TopicFilter(validating: range, in: bytes.span.bytes).range == range)
        }
    }

    private func expect(
        _ broken: Set<MalformedPacket>, _ comment: Comment,
        _ check: () throws(MalformedPacket) -> Void
    ) {
        do throws(MalformedPacket) {
            try check()
            if !broken.isEmpty { Issue.record("taken, against \(broken): \(comment)") }
        } catch {
            if !broken.contains(error) { Issue.record("\(error), not \(broken): \(comment)") }
        }
    }

    @Test(
        "agrees with a byte-by-byte reference at every length and offset", arguments: UInt64(1)...8)
    func reference(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let pieces: [[UInt8]] = [
            [0x2B], [0x23], [0x2F], [0x00], [0x7F], [0x80], [0xBF], [0xC0, 0x80], [0xC3, 0xA9],
            [0xE2, 0x82, 0xAC], [0xED, 0xA0, 0x80], [0xEF, 0xBB, 0xBF], [0xF0, 0x9D, 0x84, 0x9E],
            [0xF4, 0x90, 0x80, 0x80], [0xFF], [0x2F, 0x2B, 0x2F], [0x2F, 0x23], [0x01],
            [0xE2, 0x82],
        ]
        for length in 0...40 {
            for offset in 0...8 {
                var text = (0..<length).map { _ in UInt8(random.number(in: 0x61...0x7A)) }
                for _ in 0..<random.number(in: 0...2) where length > 0 {
                    let piece = random.pick(pieces).prefix(length)
                    let start = random.number(in: 0...length - piece.count)
                    text.replaceSubrange(start..<start + piece.count, with: piece)
                }
                compare(text, at: offset, "\(WireBytes(text)) at \(offset), seed \(seed)")
            }
        }
    }

    @Test(
        "finds one wrong byte wherever it stands",
        arguments: [0x00, 0x2B, 0x23, 0x80, 0xFF] as [UInt8])
    func everyPosition(wrong: UInt8) {
        for length in 1...40 {
            for position in 0..<length {
                var text = [UInt8](repeating: 0x61, count: length)
                text[position] = wrong
                compare(text, at: length % 8, "\(wrong) at \(position) of \(length)")
            }
        }
    }

    @Test("does not mistake neighbours of the special bytes for them")
    func neighbours() throws {
        // In the word-wide test for zero, the borrow of a zero byte reaches a following 0x01.
        for byte: UInt8 in [0x01, 0x22, 0x24, 0x2A, 0x2C, 0x7F] {
            for length in [7, 8, 9, 16, 17] {
                let text = [UInt8](repeating: byte, count: length)
                compare(text, at: 3, "\(byte) x \(length)")
                let range = ByteRange(offset: 0, count: length)
                #expect(throws: Never.self) {
                    try TextValidation.checkTopicName(text.span.bytes, range)
                }
            }
        }
    }

    @Test("agrees with the standard library on every sequence of up to two bytes")
    func twoBytes() {
        for first in UInt8.min...UInt8.max {
            compare([first], at: 0, "\(first)")
            for second in UInt8.min...UInt8.max {
                compare([first, second], at: 1, "\(first) \(second)")
            }
        }
    }

    @Test("agrees with the standard library on the borders of three and four bytes")
    func longSequences() {
        let borders: [UInt8] = [
            0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xE1, 0xED,
            0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF,
        ]
        for first in borders where first >= 0xC0 {
            for second in borders {
                for third in borders {
                    check([first, second, third])
                    for fourth in borders { check([first, second, third, fourth]) }
                }
            }
        }
    }

    private func check(_ text: [UInt8]) {
        let range = ByteRange(offset: 0, count: text.count)
        var isTaken = true
        do throws(MalformedPacket) {
            try TextValidation.checkString(text.span.bytes, range)
        } catch { isTaken = false }
        let isRight = Reference.string(text).isEmpty
        if isTaken != isRight { Issue.record("\(WireBytes(text)): taken \(isTaken)") }
    }

    @Test("takes names and filters of 65,535 bytes")
    func longest() throws {
        let text = [UInt8](repeating: 0x2F, count: 65_535)
        let range = ByteRange(offset: 0, count: text.count)
        #expect(try TopicName(validating: range, in: text.span.bytes).range == range)
        #expect(try TopicFilter(validating: range, in: text.span.bytes).range == range)
    }
}

@Suite("Packet identifiers")
struct PacketIdentifierTests {
    @Test("are never 0 [MQTT-2.3.1-1]")
    func notZero() {
        #expect(PacketIdentifier(UInt16(0)) == nil)
        #expect(PacketIdentifier(position: 0).rawValue == 1)
    }

    @Test("follow positions from 1 to 65,535 and begin anew")
    func positions() {
        #expect(PacketIdentifier(position: 65_534).rawValue == 65_535)
        #expect(PacketIdentifier(position: 65_535).rawValue == 1)
        #expect(PacketIdentifier(position: 131_069).rawValue == 65_535)
        let all = Set((1_000_000..<1_065_535).map { PacketIdentifier(position: UInt64($0)) })
        #expect(all.count == 65_535)
    }
}
