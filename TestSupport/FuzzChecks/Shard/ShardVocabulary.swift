import MQTTCodec

/// Client identifiers, topics and filters that programs name by few bits, chosen to match each
/// other.
enum ShardVocabulary {
    /// The empty one asks for a generated identifier [MQTT-3.1.3-6].
    static let clients = ["a", "b", "client-with-a-long-identifier", ""].map(bytes)
    static let users: [[UInt8]?] = [nil, nil, bytes("user"), bytes("somebody-else-altogether")]
    /// Seconds.
    static let keepAlives: [UInt16] = [0, 1, 10, 65_535]

    static let topics = [
        "a", "a/b", "a/b/c", "$SYS/x", "/", "$x/b", "topic-longer-than-a-node/b", "a/b/c/d/e",
    ].map(bytes)

    static let filters = [
        "#", "+", "a/#", "a/+", "+/b", "a/b", "a", "+/+/c", "$SYS/#", "/", "+/+",
        "topic-longer-than-a-node/b", "$share/g/a/b", "$share/g/#", "a/b/c/d/+", "$x/#",
    ].map(bytes)

    /// True for topics to which only the broker publishes.
    static func isReserved(_ topic: [UInt8]) -> Bool {
        topic.starts(with: [UInt8]("$SYS".utf8)) && (topic.count == 4 || topic[4] == 0x2F)
    }

    /// Payload bytes after the serial number: none, some, more than small output limits, and more
    /// than is copied per receiver.
    static let payloadSizes = [0, 60, 400, 17_000]

    private static func bytes(_ text: String) -> [UInt8] { [UInt8](text.utf8) }
}

/// `$share/<group>/<filter>`: one member of the group gets each message.
enum SharedFilter {
    private static let prefix = [UInt8]("$share/".utf8)

    static func isShared(_ filter: [UInt8]) -> Bool { filter.starts(with: prefix) }

    /// The plain part of a shared filter; a plain filter unchanged.
    static func matched(_ filter: [UInt8]) -> [UInt8] {
        guard isShared(filter) else { return filter }
        let behind = filter[prefix.count...]
        guard let separator = behind.firstIndex(of: 0x2F) else { return filter }
        return [UInt8](behind[(separator + 1)...])
    }
}
