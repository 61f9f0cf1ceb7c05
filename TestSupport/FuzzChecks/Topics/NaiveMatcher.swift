/// A matcher that follows section 4.7 literally, without any index. The trie must agree with it.
enum NaiveMatcher {
    static func matches(_ filter: [UInt8], _ topic: [UInt8]) -> Bool {
        let filterLevels = levels(filter)
        let topicLevels = levels(topic)
        // Wildcards at the first level do not match topics that begin with $ [MQTT-4.7.2-1].
        if topic.first == 0x24, filterLevels[0] == [0x23] || filterLevels[0] == [0x2B] {
            return false
        }
        for (depth, level) in filterLevels.enumerated() {
            // `a/#` also matches `a` itself (section 4.7.1.2).
            if level == [0x23] { return topicLevels.count >= depth }
            guard depth < topicLevels.count else { return false }
            guard level == [0x2B] || level == topicLevels[depth] else { return false }
        }
        return filterLevels.count == topicLevels.count
    }

    private static func levels(_ text: [UInt8]) -> [[UInt8]] {
        text.split(separator: 0x2F, omittingEmptySubsequences: false).map { [UInt8]($0) }
    }
}
