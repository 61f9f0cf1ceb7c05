/// Topic names and filters of few levels, so that they match often.
enum TopicVocabulary {
    /// Levels shorter and longer than a tree node stores in place, empty ones, and ones beyond
    /// ASCII.
    private static let levels = ["", "a", "b", "a-level-of-twenty-by", "$SYS", "é", "+", "#"]
    /// Levels of a topic name, in place of a filter's wildcards.
    private static let plainLevels = ["c", "$c"]

    /// One to four levels, chosen by two operands; wildcards only where a filter may have them.
    static func filter(_ program: inout ByteProgram) -> [UInt8] {
        path(&program) { index, isLast in
            levels[index] == "#" && !isLast ? "+" : levels[index]
        }
    }

    static func name(_ program: inout ByteProgram) -> [UInt8] {
        path(&program) { index, _ in index < 6 ? levels[index] : plainLevels[index - 6] }
    }

    private static func path(
        _ program: inout ByteProgram, _ level: (_ index: Int, _ isLast: Bool) -> String
    ) -> [UInt8] {
        var first = OperandBits(program.byte())
        let count = 1 + first.take(2)
        var parts = [level(first.take(3), count == 1)]
        if count > 1 { parts.append(level(first.take(3), count == 2)) }
        if count > 2 {
            var second = OperandBits(program.byte())
            parts.append(level(second.take(3), count == 3))
            if count > 3 { parts.append(level(second.take(3), true)) }
        }
        let text = parts.joined(separator: "/")
        // A topic name or filter has at least one character [MQTT-4.7.3-1].
        return [UInt8]((text.isEmpty ? "/" : text).utf8)
    }
}
