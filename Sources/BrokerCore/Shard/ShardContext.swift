import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// What every part of a shard reads (limits, time) and writes (counters, notices), and its memory.
struct ShardContext: ~Copyable {
    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    /// New limits bind what happens from then on: a queue that has become too long gives up messages when
    /// the next one comes, and a keep alive holds until its client connects again.
    var limits: BrokerLimits
    /// Set at the start of a turn.
    var now: MonotonicTime
    /// UNIX time in milliseconds; set at the start of a turn.
    var wallClockMs: Int64
    var counters = BrokerCounters()
    var notices = Notices()
    let pool = BytePool()
    let hash: KeyedHash
    /// A test ends the process at a place of its choice.
    let isRigged = Failpoint.isArmed

    /// The number of messages that may wait for a session: below what a queue can number for a connected
    /// client, so that dropping the oldest makes room many times before holes have to be closed.
    func mostWaiting(isConnected: Bool) -> UInt32 {
        isConnected ? 60_000 : limits.queueMessages
    }

    init(limits: BrokerLimits, now: MonotonicTime, wallClockMs: Int64, hash: KeyedHash) {
        self.limits = limits
        self.now = now
        self.wallClockMs = wallClockMs
        self.hash = hash
    }

    /// Whether a topic name or filter has no more levels than `limits.max_topic_levels`.
    @inline(__always)
    func isWithinLevels(_ topic: UnsafeRawBufferPointer) -> Bool {
        // A short topic cannot have too many levels, and most topics are short.
        topic.count < limits.maxTopicLevels || TopicLevels.count(topic) <= limits.maxTopicLevels
    }

    /// The keep alive in milliseconds that counts for a client that asked for `seconds`.
    func effectiveKeepAlive(_ seconds: UInt16) -> UInt32 {
        let asked = UInt32(seconds) * 1_000
        guard let limit = limits.maxKeepAlive else { return asked }
        let most = UInt32(clamping: limit.wholeMilliseconds)
        return asked == 0 ? most : min(asked, most)
    }
}
