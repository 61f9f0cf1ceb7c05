import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Limits, time, counters, notices and memory, shared by all parts of a shard.
package struct ShardContext: ~Copyable {
    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    /// New limits affect later events: a queue that is now too long drops messages when the next
    /// one arrives, and a keep alive changes when its client reconnects.
    package var limits: BrokerLimits
    /// See the same in ``Shard``.
    package var keepsNothingNew = false
    /// Set at the start of a turn.
    package var now: MonotonicTime
    /// The same in microseconds.
    package var nowMicroseconds: UInt64
    /// UNIX time in milliseconds; set at the start of a turn.
    package var wallClockMs: Int64
    /// The work that this turn may still do for clients' packets.
    package var budget = WorkBudget()
    package var counters: BrokerCounters
    package var notices = Notices()
    package var topicTraces = TopicTraces()
    package let pool = BytePool()
    package let hash: KeyedHash
    /// True in tests that end the process at a chosen place.
    package let isRigged = Failpoint.isArmed

    /// The largest number of waiting messages of a session. For a connected client it is less than
    /// the queue can number, so that holes are closed rarely.
    package func mostWaiting(isConnected: Bool) -> UInt32 {
        isConnected ? 60_000 : limits.queueMessages
    }

    /// True when a queue takes a message of so many bytes without dropping anything.
    package func hasRoom(in queue: OutboundQueue, bytes: Int, isConnected: Bool) -> Bool {
        queue.waiting < mostWaiting(isConnected: isConnected)
            && queue.waitingBytes + bytes <= limits.queueBytes
    }

    package init(
        limits: BrokerLimits, listenerCount: Int, now: MonotonicTime, wallClockMs: Int64,
        hash: KeyedHash
    ) {
        counters = BrokerCounters(listenerCount: listenerCount)
        self.limits = limits
        self.now = now
        nowMicroseconds = now.milliseconds &* 1_000
        self.wallClockMs = wallClockMs
        self.hash = hash
    }

    /// True when a topic name or filter has at most `limits.max_topic_levels` levels.
    @inline(__always)
    package func isWithinLevels(_ topic: UnsafeRawBufferPointer) -> Bool {
        // A short topic cannot have too many levels; most are short.
        topic.count < limits.maxTopicLevels || TopicLevels.count(topic) <= limits.maxTopicLevels
    }

    /// The effective keep alive in milliseconds for a client that asked for `seconds`.
    package func effectiveKeepAlive(_ seconds: UInt16) -> UInt32 {
        let asked = UInt32(seconds) * 1_000
        guard let limit = limits.maxKeepAlive else { return asked }
        let most = UInt32(clamping: limit.wholeMilliseconds)
        return asked == 0 ? most : min(asked, most)
    }
}
