/// Compares topic names with topic filters, by the rules of MQTT 3.1.1, section 4.7.
package enum TopicMatch {
    private static let slash = UInt8(ascii: "/")
    private static let dollar = UInt8(ascii: "$")
    private static let share = Array("$share/".utf8)

    /// The filter of a shared subscription is what follows its group's name.
    package static func covers(_ filter: [UInt8], _ topic: [UInt8]) -> Bool {
        let levels = shared(filter[...]).split(separator: slash, omittingEmptySubsequences: false)
        let names = topic.split(separator: slash, omittingEmptySubsequences: false)
        // Wildcards in the first level leave out the topics of the broker itself [MQTT-4.7.2-1].
        if topic.first == dollar, let first = levels.first, first == [0x2B] || first == [0x23] {
            return false
        }
        for (index, level) in levels.enumerated() {
            if level == [0x23] { return true }
            guard index < names.count, level == [0x2B] || level == names[index] else {
                return false
            }
        }
        return levels.count == names.count
    }

    private static func shared(_ filter: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard filter.starts(with: share) else { return filter }
        let rest = filter.dropFirst(share.count)
        return rest.firstIndex(of: slash).map { rest[($0 + 1)...] } ?? filter
    }
}
