import BrokerAPI
import MQTTCodec
import Structures

/// The broker's own topics `$SYS/broker/...`: their values, and when they are published.
///
/// They are retained messages of QoS 0 that no store holds. A subscriber gets the latest values,
/// then the changed ones once per interval. Without subscribers nothing is published, so an idle
/// broker sleeps; the first subscription has the values computed before it is served.
package struct SystemTopics {
    /// 0 turns the topics off.
    private let intervalMilliseconds: UInt64
    package let startedAt: MonotonicTime
    package let startedAtMs: Int64
    /// Empty until the first subscription.
    private var topics: [SystemTopic] = []
    /// The last payload of each topic.
    private var values: [String] = []
    private var load: LoadAverages
    private var refreshedAt: MonotonicTime?
    /// Topics that are being published, the last one first, with their values if these have changed.
    private var pending: [(topic: [UInt8], change: String?)] = []
    /// True when one of the topics published since ``begin(_:hasShared:)`` has a subscriber.
    private var hasSubscribers = false
    /// Time of the next publication; `nil` without subscribers.
    package private(set) var deadline: MonotonicTime?

    package init(interval: Duration, now: MonotonicTime, wallClockMs: Int64) {
        intervalMilliseconds = interval.wholeMilliseconds
        startedAt = now
        startedAtMs = wallClockMs
        load = LoadAverages(intervalMilliseconds: intervalMilliseconds, now: now)
    }

    /// True when the load averages need a sample: once per interval, in the first turn after it.
    package func isSampleDue(at now: MonotonicTime) -> Bool {
        intervalMilliseconds > 0 && load.isDue(at: now)
    }

    package mutating func add(_ sample: LoadAverages.Sample, at now: MonotonicTime) {
        load.add(sample, at: now)
    }

    package enum OnSubscribe: Equatable {
        case nothing
        /// Compute all values before the subscription is served.
        case refresh
    }

    /// Prepares for a new subscription; `filter` is the plain part of a shared one. Publication
    /// starts, and the first values are no older than the interval.
    package mutating func subscribe(
        _ filter: UnsafeRawBufferPointer, at now: MonotonicTime
    ) -> OnSubscribe {
        guard intervalMilliseconds > 0, SystemTopic.isReserved(filter) else { return .nothing }
        // The topics that are being published may have passed the subscriber's already.
        if isPublishing { hasSubscribers = true }
        guard deadline == nil else { return .nothing }
        if let refreshedAt, now.milliseconds(since: refreshedAt) < intervalMilliseconds {
            schedule(after: refreshedAt)
            return .nothing
        }
        schedule(after: now)
        return .refresh
    }

    /// Starts publication after new access rules, which may allow the topics to more clients.
    package mutating func resume() {
        guard intervalMilliseconds > 0, deadline == nil, let refreshedAt else { return }
        schedule(after: refreshedAt)
    }

    /// True when the topics are to be published now.
    package func isDue(at now: MonotonicTime) -> Bool {
        !isPublishing && deadline.map { $0 <= now } ?? false
    }

    /// True while topics are being published, which may take several turns.
    package var isPublishing: Bool { !pending.isEmpty }

    /// Begins to publish topics; ``next`` hands out one after the other.
    package mutating func begin(
        _ topics: [(topic: [UInt8], change: String?)], hasShared: Bool
    ) {
        pending = topics.reversed()
        // A topic lookup does not find groups whose members are all offline.
        hasSubscribers = hasShared
    }

    /// The topic that is published next, with its value if that has changed.
    package var next: (topic: [UInt8], change: String?)? { pending.last }

    /// Notes that ``next`` is published. Behind the last one comes the time of the next publication,
    /// none without subscribers.
    package mutating func published(at now: MonotonicTime, hasSubscribers: Bool) {
        pending.removeLast()
        if hasSubscribers { self.hasSubscribers = true }
        guard pending.isEmpty else { return }
        if self.hasSubscribers { schedule(after: now) } else { deadline = nil }
    }

    private mutating func schedule(after time: MonotonicTime) {
        deadline = time.advanced(byMilliseconds: intervalMilliseconds)
    }

    /// Computes all values; returns each topic, with its value if that has changed.
    package mutating func refresh(
        _ figures: BrokerFigures, at now: MonotonicTime
    ) -> [(topic: [UInt8], change: String?)] {
        if topics.isEmpty {
            topics = SystemTopic.all()
            values = [String](repeating: "", count: topics.count)
        }
        refreshedAt = now
        return topics.indices.map { index in
            let value = topics[index].value(figures, load)
            guard value != values[index] else { return (topics[index].name, nil) }
            values[index] = value
            return (topics[index].name, value)
        }
    }
}
