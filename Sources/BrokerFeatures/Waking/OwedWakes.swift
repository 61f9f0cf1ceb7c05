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
        /// Due: handed to its sender, as soon as that takes wakes of its lane.
        case ready
        /// The queue is read, since memory does not know its messages.
        case reading
        /// With its sender until it answers, or the timer fires.
        case sent
    }

    /// What a notification is sent for.
    enum Purpose: UInt8, BitwiseCopyable {
        /// Messages wait.
        case messages
        /// An operator tries it, whatever waits.
        case trial
        /// No message waits any more: the number on the app's icon goes.
        case badge
    }

    struct Owed: BitwiseCopyable {
        let device: UInt32
        var state = State.watching
        var purpose = Purpose.messages
        /// True when its sender has been told that the hand-out is of no use any more.
        var isWithdrawn = false
        /// True while quiet hours or a cap hold it back.
        var isHeld = false
        /// True once that was so; it counts once.
        var wasHeld = false
        /// True once a message has named it since the last hand-out.
        var isNamed = false
        /// True when a message behind those that ask was dropped.
        var hasDropped = false
        /// True when what its sender has is an alert, which counts for the cap.
        var isAlertOfSender = false
        /// True when the calls among them come too late: the queue is read for the others.
        var skipsCalls = false
        /// True until memory knows the messages from the cursor on.
        var needsReading = false
        var attempts: UInt8 = 0
        var kind = WakeKind.alert
        /// When the newest call was asked for, or found in the queue, in the units of `Shard+Calls`; 0 before
        /// the first. A device has no room for more.
        var called: UInt16 = 0
        /// Index of the rule; `nil` before a message asked for the wake.
        var rule: UInt8?
        var timer: UInt32 = noIndex
        /// The number of the hand-out that its sender has not answered; 0 before the first.
        var handOut: UInt32 = 0
        /// The lane while it is ready; ``noIndex`` otherwise.
        var lane: UInt32 = noIndex
        var links = ListLinks()
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

    /// Wakes that are ready, of one app in one environment: its sender may take none of them while
    /// it goes on with those of others.
    struct Lane: BitwiseCopyable {
        let key: LaneKey
        fileprivate var ready = IntrusiveList<ByLane>()
        fileprivate var links = ListLinks()
    }

    struct LaneKey: Hashable, BitwiseCopyable {
        let kind: Device.Kind
        let environment: Device.Environment
        /// ``Devices/Record/bundle``.
        let bundle: UInt32
    }

    fileprivate enum ByLane: ListField {
        static subscript(record: UnsafeMutablePointer<Owed>) -> ListLinks {
            get { record.pointee.links }
            set { record.pointee.links = newValue }
        }
    }

    fileprivate enum ByTurn: ListField {
        static subscript(record: UnsafeMutablePointer<Lane>) -> ListLinks {
            get { record.pointee.links }
            set { record.pointee.links = newValue }
        }
    }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private var records = Slab<Owed>()
    private var timers: TimerWheel
    private var lanes = Slab<Lane>()
    private var laneByKey: [LaneKey: UInt32] = [:]
    /// Lanes with wakes that are ready, by kind of device; the first one's turn is next.
    private var lanesOfAPNs = IntrusiveList<ByTurn>()
    private var lanesOfWebhook = IntrusiveList<ByTurn>()
    private var lanesOfFCM = IntrusiveList<ByTurn>()
    private var lastHandOut: UInt32 = 0
    /// True when there are more than one call looked at.
    var hasMore = false
    private(set) var reading = 0
    /// Bytes of topics and payloads.
    private(set) var bytes = 0

    init(now: MonotonicTime) { timers = TimerWheel(now: now) }

    var count: Int { records.count }
    var nextDeadline: MonotonicTime? { timers.nextDeadline }

    subscript(place: UInt32) -> Owed {
        @inline(__always) unsafeAddress { UnsafePointer(records.pointer(to: place)) }
        @inline(__always) unsafeMutableAddress { records.pointer(to: place) }
    }

    // MARK: Life

    mutating func add(_ device: UInt32) -> UInt32 { records.insert(Owed(device: device)) }

    mutating func remove(_ place: UInt32, pool: BytePool) {
        stopTimer(place)
        enter(place, .watching)
        clearMessage(place, pool)
        records.remove(place)
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
        records[place].isNamed = true
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

    /// Lists a wake after the others of its lane that are ready.
    mutating func makeReady(_ place: UInt32, _ key: LaneKey) {
        stopTimer(place)
        guard records[place].state != .ready else { return }
        enter(place, .ready)
        let lane: UInt32
        if let known = laneByKey[key] {
            lane = known
        } else {
            lane = lanes.insert(Lane(key: key))
            laneByKey[key] = lane
            changeTurns(key.kind) { $0.append(lane, in: $1) }
        }
        records[place].lane = lane
        lanes[lane].ready.append(place, in: records)
    }

    /// Numbers a hand-out to the sender.
    mutating func handOut(_ place: UInt32) {
        lastHandOut = lastHandOut == .max ? 1 : lastHandOut + 1
        records[place].handOut = lastHandOut
        records[place].isWithdrawn = false
        // An operator's test leaves the name of what waits behind it.
        if records[place].purpose == .messages { records[place].isNamed = false }
    }

    mutating func beginReading(_ place: UInt32) {
        stopTimer(place)
        enter(place, .reading)
    }

    private mutating func enter(_ place: UInt32, _ state: State) {
        records[place].isHeld = false
        if records[place].state == .reading { reading -= 1 }
        if records[place].state == .ready { leaveLane(place) }
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

    /// True when any lane has one.
    var isListed: Bool {
        !lanesOfAPNs.isEmpty || !lanesOfWebhook.isEmpty || !lanesOfFCM.isEmpty
    }

    func isListed(_ kind: Device.Kind) -> Bool { !turns(kind).isEmpty }

    private func turns(_ kind: Device.Kind) -> IntrusiveList<ByTurn> {
        switch kind {
        case .apns: lanesOfAPNs
        case .webhook: lanesOfWebhook
        case .fcm: lanesOfFCM
        }
    }

    private mutating func changeTurns(
        _ kind: Device.Kind, _ body: (inout IntrusiveList<ByTurn>, borrowing Slab<Lane>) -> Void
    ) {
        switch kind {
        case .apns: body(&lanesOfAPNs, lanes)
        case .webhook: body(&lanesOfWebhook, lanes)
        case .fcm: body(&lanesOfFCM, lanes)
        }
    }

    /// The lane whose turn is next.
    func firstLane(_ kind: Device.Kind) -> UInt32? {
        let list = turns(kind)
        return list.isEmpty ? nil : list.first
    }

    func key(ofLane lane: UInt32) -> LaneKey { lanes[lane].key }

    /// The first wake of a lane, which has one.
    func first(ofLane lane: UInt32) -> UInt32 { lanes[lane].ready.first }

    /// Gives the next lane its turn.
    mutating func passTurn(_ kind: Device.Kind) {
        guard let lane = firstLane(kind) else { return }
        changeTurns(kind) {
            $0.remove(lane, in: $1)
            $0.append(lane, in: $1)
        }
    }

    private mutating func leaveLane(_ place: UInt32) {
        let lane = records[place].lane
        records[place].lane = noIndex
        lanes[lane].ready.remove(place, in: records)
        guard lanes[lane].ready.isEmpty else { return }
        let key = lanes[lane].key
        changeTurns(key.kind) { $0.remove(lane, in: $1) }
        laneByKey[key] = nil
        lanes.remove(lane)
    }
}
