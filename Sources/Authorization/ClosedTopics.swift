/// Topics to which no client may publish, whatever the access rules say.
public enum ClosedTopics {
    /// True for `$SYS`, `$CONTROL`, `$hermes` and all topics below them. `$SYS` belongs to the
    /// broker. `$CONTROL` is where clients administer other brokers; Hermes has no such commands and
    /// keeps it closed. Below `$hermes` the broker takes what clients tell it about themselves
    /// (`$hermes/device`), which goes to nobody.
    public static func contains(_ topic: UnsafeRawBufferPointer) -> Bool {
        begins(topic, with: "$SYS") || begins(topic, with: "$CONTROL")
            || begins(topic, with: "$hermes")
    }

    private static func begins(_ topic: UnsafeRawBufferPointer, with level: StaticString) -> Bool {
        let length = level.utf8CodeUnitCount
        guard topic.count >= length, topic.count == length || topic[length] == UInt8(ascii: "/")
        else { return false }
        return topic.prefix(length)
            .elementsEqual(UnsafeBufferPointer(start: level.utf8Start, count: length))
    }
}
