/// The topics to which no client publishes, whatever the access rules say.
public enum ClosedTopics {
    /// True for `$SYS`, `$CONTROL` and all below them: the broker's own, and those by which other
    /// brokers are administered, so that nobody gets used to sending orders where nobody checks who
    /// sends them.
    public static func contains(_ topic: UnsafeRawBufferPointer) -> Bool {
        begins(topic, with: "$SYS") || begins(topic, with: "$CONTROL")
    }

    private static func begins(_ topic: UnsafeRawBufferPointer, with level: StaticString) -> Bool {
        let length = level.utf8CodeUnitCount
        guard topic.count >= length, topic.count == length || topic[length] == UInt8(ascii: "/")
        else { return false }
        return topic.prefix(length)
            .elementsEqual(UnsafeBufferPointer(start: level.utf8Start, count: length))
    }
}
