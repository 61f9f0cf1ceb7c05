import Authorization
import PlainText

/// The slip by which a subscription misses a topic that it was probably meant to match.
enum NearMiss {
    /// Filters that are looked at for one topic; a client may have a hundred thousand.
    static let mostFilters = 1_000

    private static let slash = UInt8(ascii: "/")

    /// What keeps the filter from matching, as the end of a sentence about it; `nil` for one that matches,
    /// and for one that is wide of the mark.
    static func words(filter: String, topic: String) -> String? {
        let filter = plain(filter)
        let topic = [UInt8](topic.utf8)
        guard !matches(filter, topic) else { return nil }
        return ofSlashes(filter, topic) ?? ofSpelling(filter, topic) ?? ofLevels(filter, topic)
    }

    private static func ofSlashes(_ filter: [UInt8], _ topic: [UInt8]) -> String? {
        if filter.first == slash, matches(Array(filter.dropFirst()), topic) {
            return "it begins with a slash, and the topic does not"
        }
        if topic.first == slash, matches([slash] + filter, topic) {
            return "the topic begins with a slash, and it does not"
        }
        if filter.last == slash, matches(Array(filter.dropLast()), topic) {
            return "it ends with a slash, and the topic does not"
        }
        if topic.last == slash, matches(filter + [slash], topic) {
            return "the topic ends with a slash, and it does not"
        }
        return nil
    }

    private static func ofSpelling(_ filter: [UInt8], _ topic: [UInt8]) -> String? {
        if matches(filter.map(lowercased), topic.map(lowercased)) {
            return "capital and small letters differ"
        }
        if matches(filter.filter { !isBlank($0) }, topic.filter { !isBlank($0) }) {
            return "blanks differ"
        }
        let wildcards = filter.map { $0 == UInt8(ascii: "*") ? UInt8(ascii: "+") : $0 }
        if wildcards != filter,
            matches(wildcards, topic) || matches(wildcards + [slash, UInt8(ascii: "#")], topic)
        {
            return "* is a letter like any other, and + or # are wildcards"
        }
        return nil
    }

    private static func ofLevels(_ filter: [UInt8], _ topic: [UInt8]) -> String? {
        let levels = filter.split(separator: slash, omittingEmptySubsequences: false)
        if topic.first == UInt8(ascii: "$"), filter.first != UInt8(ascii: "$"),
            matches(filter, [UInt8(ascii: "x")] + topic.dropFirst())
        {
            return "a wildcard at its beginning matches no topic that begins with $ [MQTT-4.7.2-1]"
        }
        let shorter = Array(levels.dropLast().joined(separator: [slash]))
        if levels.count > 1, levels.last?.elementsEqual("+".utf8) ?? false,
            matches(shorter + [slash, UInt8(ascii: "#")], topic)
        {
            return matches(shorter, topic)
                ? "+ at its end asks for one level more than the topic has, and # would not"
                : "+ at its end stands for one level, and # would match all below"
        }
        if matches(filter + [slash, UInt8(ascii: "#")], topic) {
            return "the topic has more levels, and it does not end with /#"
        }
        if levels.count > 1, matches(shorter, topic) {
            return "it has a level more than the topic"
        }
        return nil
    }

    private static func matches(_ filter: [UInt8], _ topic: [UInt8]) -> Bool {
        guard !filter.isEmpty, !topic.isEmpty else { return false }
        return filter.withUnsafeBytes { filter in
            topic.withUnsafeBytes { FilterMatch.matches(filter: filter, topic: $0) }
        }
    }

    /// A shared subscription's filter without the group.
    private static func plain(_ filter: String) -> [UInt8] {
        guard filter.begins(with: "$share/") else { return [UInt8](filter.utf8) }
        let parts = filter.parts(separator: "/", maxSplits: 2)
        return parts.count == 3 ? [UInt8](parts[2].utf8) : []
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") }
}
