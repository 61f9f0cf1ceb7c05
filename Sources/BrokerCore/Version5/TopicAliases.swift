import MQTTCodec
import Structures

/// The topics that one client's aliases stand for (MQTT 5.0, section 3.3.2.3.4).
package struct TopicAliases {
    package enum Answer {
        case taken
        /// Above ``most``, which CONNACK announced [MQTT-3.3.2-9].
        case aboveMaximum
        /// All topics together have more than ``mostBytes``.
        case tooLong
    }

    /// Aliases of a connection, 1 to this [MQTT-3.3.2-12].
    package static var most: UInt16 { 16 }
    /// Bytes of their topics together.
    package static var mostBytes: Int { 16 * 1_024 }

    private var topics: [SharedBytes?] = []
    private var bytes = 0

    package init() {}

    package func topic(of alias: TopicAlias) -> UnsafeRawBufferPointer? {
        let place = Int(alias.rawValue) - 1
        guard place < topics.count, let topic = topics[place] else { return nil }
        return UnsafeRawBufferPointer(start: topic.bytes, count: topic.count)
    }

    package mutating func set(
        _ alias: TopicAlias, _ topic: UnsafeRawBufferPointer, pool: BytePool
    ) -> Answer {
        guard alias.rawValue <= Self.most else { return .aboveMaximum }
        let place = Int(alias.rawValue) - 1
        while topics.count <= place { topics.append(nil) }
        let former = topics[place]
        // A packet that waits is offered again, with the same topic.
        if let former, former.count == topic.count,
            topic.elementsEqual(UnsafeRawBufferPointer(start: former.bytes, count: former.count))
        {
            return .taken
        }
        let sum = bytes + topic.count - (former?.count ?? 0)
        guard sum <= Self.mostBytes else { return .tooLong }
        bytes = sum
        former?.release(in: pool)
        let kept = SharedBytes(count: topic.count, pool: pool)
        if let base = topic.baseAddress {
            kept.bytes.copyMemory(from: base, byteCount: topic.count)
        }
        topics[place] = kept
        return .taken
    }

    package mutating func removeAll(in pool: BytePool) {
        for topic in topics { topic?.release(in: pool) }
        topics = []
        bytes = 0
    }
}
