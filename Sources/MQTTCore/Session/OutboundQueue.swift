import MQTTCodec
import Structures

/// The messages for one session, in order: first the in-flight window, then the waiting messages.
///
/// Each message has a position. Its packet identifier is computed from the position
/// (``PacketIdentifier/init(position:)``), so identifiers need no allocator, an acknowledgement
/// finds its message in constant time, and a reconnect changes nothing [MQTT-4.4.0-1]. No
/// identifier is in use twice, because the queue in memory never spans more than 65,535 positions.
/// ```
///   head            next to send           end
///    | sent  released  sent | waiting … waiting |
/// ```
/// A message that is done leaves a hole until the head has passed it. A message that waits for its
/// commit holds back all messages behind it, so that receivers see them in the order of their
/// positions.
///
/// With a store, only a window of the queue may be in memory. Of the other messages the queue knows
/// only numbers and positions: those in flight that are not loaded (``storedInFlight``), and behind
/// the window the waiting ones (``stored``). The owner loads both in order (``placeSent(_:pool:)``,
/// ``placeWaiting(_:ticket:pool:)``).
public struct OutboundQueue: BitwiseCopyable {
    enum State: UInt8, BitwiseCopyable {
        /// Acknowledged, expired, dropped, or sent with QoS 0.
        case hole
        case waiting
        /// Sent. A QoS 1 message stays in this state until its PUBACK, a QoS 2 message until its
        /// PUBREC.
        case sent
        /// PUBREC of a QoS 2 message has come, and PUBCOMP has not. The message itself is freed
        /// [MQTT-4.3.3-1].
        case released
    }

    struct Entry: BitwiseCopyable {
        var message: Message?
        /// The commit to wait for; 0 for none. In the state ``State/released``, in which nothing is
        /// waited for and the message is gone, its ``Message/arrivedMs``.
        var ticket: UInt64
        var state: State
        var qos: QoS
        var retain: Bool
        /// The shared subscription whose turn chose this session; ``noIndex`` for none.
        var group: UInt32
    }

    /// A message in the form in which one receiver gets it.
    public struct Item: BitwiseCopyable {
        public var message: Message
        public var position: UInt64
        public var qos: QoS
        public var retain: Bool
        /// The shared subscription by which it came; ``noIndex`` for none.
        public var group: UInt32

        public var packetIdentifier: PacketIdentifier { PacketIdentifier(position: position) }
    }

    /// The answer to the question which message to send next.
    public enum Next {
        /// Send this message. With QoS 1 and 2 it is in flight from now on; with QoS 0 the caller
        /// owns the reference.
        case send(Item)
        /// The next message waits for its commit.
        case awaitsCommit
        /// No message waits, or the in-flight window is full.
        case nothing
    }

    /// A packet to send again after a reconnect.
    public enum Resend {
        case publish(Item)
        case pubrel(PacketIdentifier)
    }

    var ring: UnsafeMutablePointer<Entry>?
    var capacity: UInt32 = 0
    /// Number of positions from `head` to the next message to send.
    var sentSpan: UInt32 = 0
    /// Number of positions from `head` to the end of the messages in memory.
    var span: UInt32 = 0
    /// Positions without a message among those that ``stored`` counts.
    var storedHoles: UInt32 = 0
    var head: UInt64
    /// Messages in flight that are in memory.
    public internal(set) var loadedInFlight: UInt32 = 0
    /// Messages in flight that are only in the store, since their client disconnected. After a crash
    /// these are all that may have been sent.
    public internal(set) var storedInFlight: UInt32 = 0
    /// Waiting messages in memory.
    public internal(set) var loadedWaiting: UInt32 = 0
    /// Positions of waiting messages that are only in the store, holes included. They follow all
    /// messages in memory.
    public internal(set) var stored: UInt32 = 0
    /// Position of the first message that ``stored`` counts; without one, the next position to
    /// assign.
    public internal(set) var firstStored: UInt64
    /// Bytes of the waiting messages in memory.
    public internal(set) var loadedBytes: Int = 0
    var storedBytes: Int = 0

    /// The queue in memory never spans more positions than this, so that packet identifiers stay
    /// unique.
    static var largestSpan: UInt32 { 65_535 }
    /// The most positions of messages in flight.
    public static var mostPositions: UInt32 { largestSpan }

    public init(firstPosition: UInt64 = 0) {
        head = firstPosition
        firstStored = firstPosition
    }

    /// A queue as the store holds it: `messages` messages with `bytes` bytes together. They are in
    /// flight below the position `horizon`, and wait from there to `end`.
    ///
    /// Until they have been loaded, messages in flight may count as waiting in place of holes, and
    /// those that wait count with the average of all.
    public init(horizon: UInt64, end: UInt64, messages: UInt32, bytes: Int) {
        head = horizon
        firstStored = horizon
        stored = UInt32(clamping: end - horizon)
        let waiting = min(stored, messages)
        storedHoles = stored - waiting
        storedInFlight = messages - waiting
        let share = Double(waiting) / Double(max(1, messages))
        storedBytes = waiting == messages ? bytes : Int(Double(bytes) * share)
    }

    /// The position of the next message to be appended.
    public var end: UInt64 { firstStored + UInt64(stored) }
    public var isEmpty: Bool { span == 0 && stored == 0 && storedInFlight == 0 }
    /// True while no position can be assigned until the oldest message is acknowledged.
    public var isFull: Bool { firstStored - head >= UInt64(Self.largestSpan) }
    public var inFlight: UInt32 { loadedInFlight + storedInFlight }
    /// Messages that have not been sent yet, in memory and in the store.
    public var waiting: UInt32 { loadedWaiting + stored - storedHoles }
    /// Bytes of those messages. A message that was dropped from the store is subtracted with their
    /// average size.
    public var waitingBytes: Int { loadedBytes + storedBytes }
    /// True while messages are only in the store, so that new ones must be queued there behind
    /// them.
    public var isStoring: Bool { stored > 0 || storedInFlight > 0 }
    /// True when a message may wait to be sent, in memory or in the store.
    public var hasWaiting: Bool { loadedWaiting > 0 || isStoring }

    // MARK: Adding

    /// Appends a message and takes its reference over. The queue must not be full or storing.
    public mutating func append(
        _ message: Message, qos: QoS, retain: Bool, ticket: UInt64, group: UInt32 = noIndex,
        pool: BytePool
    ) {
        precondition(!isFull, "a queue of \(span) positions takes no more")
        precondition(!isStoring, "a message would pass those in the store")
        push(
            Entry(
                message: message, ticket: ticket, state: .waiting, qos: qos, retain: retain,
                group: group), at: firstStored, pool)
        loadedWaiting += 1
        loadedBytes += message.contentBytes
        firstStored += 1
    }

    /// Drops the oldest waiting message in memory. Returns its position; `nil` when none waits
    /// there. ``dropOldestStored()`` does the same in the store.
    public mutating func dropOldestWaiting(pool: BytePool) -> UInt64? {
        skipHoles()
        guard sentSpan < span else { return nil }
        let position = head + UInt64(sentSpan)
        let message = takeWaiting(position)
        message?.release(in: pool)
        store(.hole, at: position)
        sentSpan += 1
        advanceHead(pool)
        return position
    }

    /// Moves waiting messages forward over the holes that dropped ones left.
    ///
    /// Only messages that were never sent change their position, so no packet identifier in use
    /// changes. `moved` hears of each with its old and its new position, in rising order.
    public mutating func closeHoles(pool: BytePool, moved: (UInt64, UInt64) -> Void = { _, _ in }) {
        var end = sentSpan
        while end > 0, entry(at: head + UInt64(end - 1)).state == .hole { end -= 1 }
        let firstWaiting = sentSpan
        sentSpan = end
        for offset in firstWaiting..<span {
            let entry = entry(at: head + UInt64(offset))
            guard entry.state == .waiting else { continue }
            store(entry, at: head + UInt64(end))
            if end != offset { moved(head + UInt64(offset), head + UInt64(end)) }
            end += 1
        }
        span = end
        firstStored = head + UInt64(span)
        if span == 0 { releaseRing(pool) }
    }

    // MARK: Sending

    /// Takes the next message that may be sent, if the window of `limit` messages in flight has
    /// room for it.
    ///
    /// `isCommitted` tells whether the commit of a ticket has completed.
    public mutating func next(
        limit: UInt32, pool: BytePool, isCommitted: (UInt64) -> Bool
    ) -> Next {
        skipHoles()
        guard sentSpan < span else { return .nothing }
        let position = head + UInt64(sentSpan)
        var entry = entry(at: position)
        guard let message = entry.message else {
            preconditionFailure("position \(position) waits without a message")
        }
        guard entry.ticket == 0 || isCommitted(entry.ticket) else { return .awaitsCommit }
        let item = Item(
            message: message, position: position, qos: entry.qos, retain: entry.retain,
            group: entry.group)
        if entry.qos == .atMostOnce {
            _ = takeWaiting(position)
            store(.hole, at: position)
            sentSpan += 1
            advanceHead(pool)
            return .send(item)
        }
        guard loadedInFlight < limit else { return .nothing }
        _ = takeWaiting(position)
        entry.state = .sent
        store(entry, at: position)
        sentSpan += 1
        loadedInFlight += 1
        return .send(item)
    }

    /// Gives up the message that ``next(limit:pool:isCommitted:)`` returned last, because it has
    /// expired.
    public mutating func abandon(_ item: Item, pool: BytePool) {
        if item.qos != .atMostOnce {
            loadedInFlight -= 1
            store(.hole, at: item.position)
            advanceHead(pool)
        }
        item.message.release(in: pool)
    }

    // MARK: Removing

    /// Drops all messages; the next position stays as it is.
    public mutating func removeAll(in pool: BytePool) {
        for offset in 0..<UInt64(span) { entry(at: head + offset).message?.release(in: pool) }
        releaseRing(pool)
        head = end
        firstStored = head
        (span, sentSpan, loadedInFlight, loadedWaiting, loadedBytes) = (0, 0, 0, 0, 0)
        (stored, storedHoles, storedInFlight, storedBytes) = (0, 0, 0, 0)
    }

    // MARK: The ring

    func entry(at position: UInt64) -> Entry {
        guard let ring else { preconditionFailure("position \(position) of an empty queue") }
        return ring[Int(position & UInt64(capacity - 1))]
    }

    func store(_ entry: Entry, at position: UInt64) {
        guard let ring else { preconditionFailure("position \(position) of an empty queue") }
        ring[Int(position & UInt64(capacity - 1))] = entry
    }

    mutating func takeWaiting(_ position: UInt64) -> Message? {
        let message = entry(at: position).message
        loadedWaiting -= 1
        loadedBytes -= message?.contentBytes ?? 0
        return message
    }

    /// Puts an entry at a position behind the window; positions between become holes.
    mutating func push(_ entry: Entry, at position: UInt64, _ pool: BytePool) {
        // An empty window begins at the position of its first message.
        if span == 0 { head = position }
        while head + UInt64(span) < position { extend(.hole, pool) }
        extend(entry, pool)
    }

    /// Appends an entry at the end of the window.
    private mutating func extend(_ entry: Entry, _ pool: BytePool) {
        if span == capacity { grow(pool) }
        store(entry, at: head + UInt64(span))
        span += 1
    }

    /// Moves the place of the next message to send over holes.
    mutating func skipHoles() {
        while sentSpan < span, entry(at: head + UInt64(sentSpan)).state == .hole { sentSpan += 1 }
    }

    /// Moves the head over holes, and frees the memory of an empty window.
    mutating func advanceHead(_ pool: BytePool) {
        while sentSpan > 0, entry(at: head).state == .hole {
            head += 1
            span -= 1
            sentSpan -= 1
        }
        if span == 0 { releaseRing(pool) }
    }

    private mutating func grow(_ pool: BytePool) {
        let larger = max(4, capacity * 2)
        let raw = pool.allocate(Int(larger) * MemoryLayout<Entry>.stride)
        let entries = raw.bindMemory(to: Entry.self, capacity: Int(larger))
        for offset in 0..<UInt64(span) {
            let position = head + offset
            (entries + Int(position & UInt64(larger - 1))).initialize(to: entry(at: position))
        }
        releaseRing(pool)
        ring = entries
        capacity = larger
    }

    mutating func releaseRing(_ pool: BytePool) {
        guard let ring else { return }
        pool.deallocate(
            UnsafeMutableRawPointer(ring), count: Int(capacity) * MemoryLayout<Entry>.stride)
        self.ring = nil
        capacity = 0
    }
}

extension OutboundQueue.Entry {
    static var hole: Self {
        Self(
            message: nil, ticket: 0, state: .hole, qos: .atMostOnce, retain: false, group: noIndex)
    }
}
