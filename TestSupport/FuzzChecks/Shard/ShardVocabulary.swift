import MQTTCodec

/// What programs name by few bits, chosen so that clients, topics and filters meet.
enum ShardVocabulary {
    /// The last one asks for an identifier of the broker's [MQTT-3.1.3-6].
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

    /// Whether only the broker publishes to a topic.
    static func isReserved(_ topic: [UInt8]) -> Bool {
        topic.starts(with: [UInt8]("$SYS".utf8)) && (topic.count == 4 || topic[4] == 0x2F)
    }

    /// Bytes of payload behind the serial number: none, some, more than small output limits, and
    /// more than is copied for each receiver.
    static let payloadSizes = [0, 60, 400, 17_000]

    private static func bytes(_ text: String) -> [UInt8] { [UInt8](text.utf8) }
}

/// `$share/<group>/<filter>` (section 5 of the design): the group gets each message once.
enum SharedFilter {
    private static let prefix = [UInt8]("$share/".utf8)

    static func isShared(_ filter: [UInt8]) -> Bool { filter.starts(with: prefix) }

    /// What a filter is matched by: the part behind the group, for a shared one.
    static func matched(_ filter: [UInt8]) -> [UInt8] {
        guard isShared(filter) else { return filter }
        let behind = filter[prefix.count...]
        guard let separator = behind.firstIndex(of: 0x2F) else { return filter }
        return [UInt8](behind[(separator + 1)...])
    }
}
