import BrokerAPI
import MQTTCodec
import Structures

/// The broker's own topics `$SYS/broker/...`: their values, and when they are published.
///
/// They are retained messages of QoS 0 that no store holds: a new subscriber gets the latest values, and then
/// those that change, once per interval. As long as nobody subscribes, nothing is published and an idle
/// broker sleeps; the first subscription has the values made anew before it is served.
struct SystemTopics {
    /// 0 turns the topics off.
    private let intervalMilliseconds: UInt64
    let startedAt: MonotonicTime
    let startedAtMs: Int64
    /// Empty while nobody has asked for them.
    private var topics: [SystemTopic] = []
    /// The payload that each topic had last.
    private var values: [String] = []
    private var load: LoadAverages
    private var refreshedAt: MonotonicTime?
    /// When the topics are published again; `nil` while nobody subscribes to any.
    private(set) var deadline: MonotonicTime?

    init(interval: Duration, now: MonotonicTime, wallClockMs: Int64) {
        intervalMilliseconds = interval.wholeMilliseconds
        startedAt = now
        startedAtMs = wallClockMs
        load = LoadAverages(intervalMilliseconds: intervalMilliseconds, now: now)
    }

    /// Whether the load averages take a sample: once per interval, in the first turn that happens.
    func isSampleDue(at now: MonotonicTime) -> Bool {
        intervalMilliseconds > 0 && load.isDue(at: now)
    }

    mutating func add(_ sample: LoadAverages.Sample, at now: MonotonicTime) {
        load.add(sample, at: now)
    }

    enum OnSubscribe: Equatable {
        case nothing
        /// Make all values anew before the subscription is served.
        case refresh
    }

    /// A subscription to this filter, the plain part of a shared one, is about to be added: the topics are
    /// published from now on, and the values that it is served first are no older than the interval.
    mutating func subscribe(
        _ filter: UnsafeRawBufferPointer, at now: MonotonicTime
    ) -> OnSubscribe {
        guard intervalMilliseconds > 0, deadline == nil, SystemTopic.isReserved(filter) else {
            return .nothing
        }
        if let refreshedAt, now.milliseconds(since: refreshedAt) < intervalMilliseconds {
            schedule(after: refreshedAt)
            return .nothing
        }
        schedule(after: now)
        return .refresh
    }

    /// Other access rules apply: a client that had no right to the topics may have it from now on.
    mutating func resume() {
        guard intervalMilliseconds > 0, deadline == nil, let refreshedAt else { return }
        schedule(after: refreshedAt)
    }

    /// Whether the topics are due.
    func isDue(at now: MonotonicTime) -> Bool { deadline.map { $0 <= now } ?? false }

    /// The topics were published; with `hasSubscribers` they are again after the interval.
    mutating func published(at now: MonotonicTime, hasSubscribers: Bool) {
        if hasSubscribers { schedule(after: now) } else { deadline = nil }
    }

    private mutating func schedule(after time: MonotonicTime) {
        deadline = time.advanced(byMilliseconds: intervalMilliseconds)
    }

    /// Makes all values anew; returns each topic, with its value if that has changed.
    mutating func refresh(
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
