import PlainText

/// Says whether a topic filter of a subscription matches a topic name, by the same code as access
/// rules: wildcards as in MQTT (section 4.7), none of which matches a leading `$` [MQTT-4.7.2-1].
/// In a shared subscription, `$share/group/filter`, the filter counts.
public enum FilterMatch {
    public static func matches(filter: String, topic: String) -> Bool {
        var plain = filter[...]
        if filter.begins(with: "$share/") {
            let parts = filter.parts(separator: "/", maxSplits: 2)
            plain = parts.count == 3 ? parts[2] : ""
        }
        return Array(plain.utf8).withUnsafeBytes { filter in
            Array(topic.utf8).withUnsafeBytes { topic in
                matches(filter: filter, topic: topic)
            }
        }
    }

    /// The same for a filter that is not shared.
    public static func matches(
        filter: UnsafeRawBufferPointer, topic: UnsafeRawBufferPointer
    ) -> Bool {
        var nobody = PlaceholderNames(nil)
        var steps = 0
        return TopicPattern.matches(
            filter, topic: topic, &nobody, isAllow: true, steps: &steps)
    }
}
