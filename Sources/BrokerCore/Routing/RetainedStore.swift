import BrokerAPI
import MQTTCore
import Structures

/// The retained messages of a shard; those below `$SYS/` count for no limit.
package struct RetainedStore: ~Copyable {
    /// The effect of a message with RETAIN on the retained message of its topic.
    package enum Effect: Equatable {
        case keep
        /// No payload [MQTT-3.3.1-10], or beyond a limit, which makes the former message outdated.
        case remove
        /// The message exceeds a limit, and the topic has no retained message.
        case nothing
    }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private var messages: RetainedMessages
    private var systemCount = 0
    private var systemBytes = 0
    private var systemWeight = 0

    package init(hash: KeyedHash, pool: BytePool) {
        messages = RetainedMessages(hash: hash, pool: pool)
    }

    /// Clients' retained messages.
    package var count: Int { messages.count - systemCount }
    /// The bytes of clients' retained messages.
    package var byteCount: Int { messages.byteCount - systemBytes }
    /// The weight of clients' topics against `limits.max_retained`.
    private var weight: Int { messages.weight - systemWeight }
    package var isEmpty: Bool { messages.count == 0 }

    /// Decides about a message with RETAIN. Beyond `limits.max_retained` and
    /// `limits.retained_bytes` it is not kept, and the limit is returned. The former message of its
    /// topic is removed nevertheless [MQTT-3.3.1-7].
    package func effect(
        of message: Message, _ context: borrowing ShardContext
    ) -> (effect: Effect, limit: Limit?) {
        guard message.payload.count > 0 else { return (.remove, nil) }
        // No topic has more levels than its bytes allow.
        guard
            context.keepsNothingNew || byteCount + message.count > context.limits.retainedBytes
                || weight + message.topic.count / 8 + 1 > context.limits.maxRetained
        else { return (.keep, nil) }
        let former = messages.message(of: message.topic)?.count
        guard let limit = limit(of: message, replacing: former, context) else {
            return (.keep, nil)
        }
        return (former == nil ? .nothing : .remove, limit)
    }

    /// The limit that a new retained message exceeds; a replaced message is subtracted.
    private func limit(
        of message: Message, replacing former: Int?, _ context: borrowing ShardContext
    ) -> Limit? {
        let growth = message.count - (former ?? 0)
        if growth > 0, context.keepsNothingNew { return .memory }
        if growth > 0, byteCount + growth > context.limits.retainedBytes { return .retainedBytes }
        guard former == nil else { return nil }
        return weight + TopicLevels.weight(of: message.topic) > context.limits.maxRetained
            ? .maxRetained : nil
    }

    /// Keeps a client's message, which replaces the former one of its topic. Returns its record, by
    /// which ``message(ofRecord:)`` finds it; `nil` when it has no payload.
    @discardableResult
    package mutating func keep(_ message: Message) -> UInt32? { messages.update(message) }

    package mutating func remove(_ topic: UnsafeRawBufferPointer) { messages.remove(topic) }

    /// The retained message of a topic, borrowed until the next change; `nil` without one.
    package func message(of topic: UnsafeRawBufferPointer) -> Message? {
        messages.message(of: topic)
    }

    /// The message of a record, which may be a later one of the same or another topic; `nil` when
    /// the record has none.
    package func message(ofRecord record: UInt32) -> Message? { messages.message(ofRecord: record) }

    /// Keeps one of the broker's own messages.
    package mutating func keepSystem(_ message: Message) {
        let (count, bytes, weight) = (messages.count, messages.byteCount, messages.weight)
        messages.update(message)
        systemCount += messages.count - count
        systemBytes += messages.byteCount - bytes
        systemWeight += messages.weight - weight
    }

    // MARK: Walks

    /// Begins a walk over the messages that match a filter; ``end(_:)`` ends it.
    package mutating func cursor(_ filter: [UInt8]) -> RetainedCursor {
        filter.withUnsafeBytes { messages.cursor($0) }
    }

    /// The next message of a walk. Visits at most `steps` topics and subtracts them.
    package mutating func next(_ cursor: inout RetainedCursor, steps: inout Int)
        -> RetainedCursor.Step
    {
        messages.next(&cursor, steps: &steps)
    }

    package mutating func end(_ cursor: consuming RetainedCursor) { messages.end(cursor) }
}
