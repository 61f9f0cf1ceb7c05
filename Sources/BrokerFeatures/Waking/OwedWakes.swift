import BrokerAPI
import BrokerCore
import Structures

/// Wakes that devices are owed, when each is due, and those that wait for a sender.
struct OwedWakes: ~Copyable {
    enum State: UInt8, BitwiseCopyable {
        /// The client is connected, and answers what was delivered or does not: looked at when the
        /// timer fires.
        case watching
        /// Due when the timer fires.
        case waiting
        /// Due: handed to the next sender that asks.
        case ready
        /// The queue is read, since memory does not know its messages.
        case reading
        /// With its sender until it answers, or the timer fires.
        case sent
    }

    struct Owed: BitwiseCopyable {
        let device: UInt32
        var state = State.watching
        /// True while it stands in the list of those that are ready.
        var isListed = false
        /// True when it only keeps its place in that list.
        var isRemoved = false
        /// True until memory knows the messages from the cursor on.
        var needsReading = false
        /// True for the operator's trial, which is sent whatever waits.
        var isTest = false
        var attempts: UInt8 = 0
        var kind = WakeKind.alert
        /// Index of the rule; `nil` before a message asked for the wake.
        var rule: UInt8?
        var timer: UInt32 = noIndex
        /// Messages below this position ask for the wake.
        var target: UInt64 = 0
        /// ``target`` when it was handed to its sender, or when the watch began.
        var seen: UInt64 = 0
        /// The commit of the last such message.
        var ticket: UInt64 = 0
        /// Where reading goes on.
        var next: UInt64 = 0
        /// Topic and payload of the newest such message.
        var topic = CompactBytes()
        var payload = CompactBytes()
        var collapse: UInt64 = 0
        /// UNIX time in milliseconds at which the last of them expires; 0 for never.
        var expiresAtMs: Int64 = 0
        /// Messages that asked since the last accepted wake, and of these those told by the sent
        /// one.
        var count: UInt32 = 0
        var told: UInt32 = 0
    }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private var records = Slab<Owed>()
    private var timers: TimerWheel
    /// Places of those that are ready, by kind of device.
    private var readyAPNs = RingBuffer<UInt32>()
    private var readyWebhook = RingBuffer<UInt32>()
    /// True when a list has more than one call looked at.
    var hasMore = false
    private(set) var reading = 0
    /// Bytes of topics and payloads.
    private(set) var bytes = 0

    init(now: MonotonicTime) { timers = TimerWheel(now: now) }

    /// Wakes that are owed, with removed ones that still stand in a list.
    var count: Int { records.count }
    var nextDeadline: MonotonicTime? { timers.nextDeadline }

    subscript(place: UInt32) -> Owed {
        @inline(__always) unsafeAddress { UnsafePointer(records.pointer(to: place)) }
        @inline(__always) unsafeMutableAddress { records.pointer(to: place) }
    }

    // MARK: Life

    mutating func add(_ device: UInt32) -> UInt32 { records.insert(Owed(device: device)) }

    /// Removes a wake. Its place is used again once it has left the list of those that are ready.
    mutating func remove(_ place: UInt32, pool: BytePool) {
        stopTimer(place)
        enter(place, .watching)
        clearMessage(place, pool)
        records[place].isRemoved = true
        if !records[place].isListed { records.remove(place) }
    }

    /// Sets the newest message that asks for the wake.
    mutating func setMessage(
        _ place: UInt32, topic: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer,
        pool: BytePool
    ) {
        if !records[place].topic.equals(topic) {
            bytes += topic.count - records[place].topic.count
            records[place].topic.destroy(in: pool)
            records[place].topic = CompactBytes(topic, pool: pool)
        }
        guard !(payload.isEmpty && records[place].payload.isEmpty) else { return }
        bytes += payload.count - records[place].payload.count
        records[place].payload.destroy(in: pool)
        records[place].payload = CompactBytes(payload, pool: pool)
    }

    private mutating func clearMessage(_ place: UInt32, _ pool: BytePool) {
        bytes -= records[place].topic.count + records[place].payload.count
        records[place].topic.destroy(in: pool)
        records[place].payload.destroy(in: pool)
        records[place].topic = CompactBytes()
        records[place].payload = CompactBytes()
    }

    // MARK: States

    /// Has the wake wait in a state until a time.
    mutating func wait(_ place: UInt32, _ state: State, until time: MonotonicTime, key: UInt64) {
        stopTimer(place)
        enter(place, state)
        records[place].timer = timers.schedule(key, at: time)
    }

    /// Lists a wake behind the others that are ready.
    mutating func makeReady(_ place: UInt32, _ kind: Device.Kind) {
        stopTimer(place)
        enter(place, .ready)
        guard !records[place].isListed else { return }
        records[place].isListed = true
        switch kind {
        case .apns: readyAPNs.append(place)
        case .webhook: readyWebhook.append(place)
        }
    }

    mutating func beginReading(_ place: UInt32) {
        stopTimer(place)
        enter(place, .reading)
    }

    private mutating func enter(_ place: UInt32, _ state: State) {
        if records[place].state == .reading { reading -= 1 }
        if state == .reading { reading += 1 }
        records[place].state = state
    }

    private mutating func stopTimer(_ place: UInt32) {
        guard records[place].timer != noIndex else { return }
        timers.cancel(records[place].timer)
        records[place].timer = noIndex
    }

    /// The key of the next timer that has fired; it names the device.
    mutating func popExpired(now: MonotonicTime) -> UInt64? { timers.popExpired(now: now) }

    /// Notes that a wake's timer has fired.
    mutating func timerFired(_ place: UInt32) { records[place].timer = noIndex }

    // MARK: Those that are ready

    /// True when any list has an entry.
    var isListed: Bool { Device.Kind.allCases.contains { listedCount($0) > 0 } }

    /// Entries of the list; some may not be ready any more.
    func listedCount(_ kind: Device.Kind) -> Int {
        switch kind {
        case .apns: readyAPNs.count
        case .webhook: readyWebhook.count
        }
    }

    /// The first wake of the list, which may not be ready any more; `nil` at its end.
    func firstListed(_ kind: Device.Kind) -> UInt32? {
        guard listedCount(kind) > 0 else { return nil }
        switch kind {
        case .apns: return readyAPNs[0]
        case .webhook: return readyWebhook[0]
        }
    }

    /// Takes the first wake off the list; `nil` when it is not ready any more.
    mutating func popReady(_ kind: Device.Kind) -> UInt32? {
        let first = kind == .apns ? readyAPNs.popFirst() : readyWebhook.popFirst()
        guard let place = first else { return nil }
        records[place].isListed = false
        guard !records[place].isRemoved else {
            records.remove(place)
            return nil
        }
        return records[place].state == .ready ? place : nil
    }
}
