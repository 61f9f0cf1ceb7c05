import MQTTCodec
import Structures

/// Messages of a queue that only the store holds.
extension OutboundQueue {
    /// Assigns the next position to a message of `bytes` bytes that is written to the store and not
    /// kept in memory.
    public mutating func store(bytes: Int) -> UInt64 {
        let position = end
        stored += 1
        storedBytes += bytes
        return position
    }

    /// True while a message below a position waits, or is in flight. Messages in flight that only the
    /// store has count as below any position.
    public func holdsMessages(below position: UInt64) -> Bool {
        span > 0 && head < position || storedInFlight > 0
            || stored > storedHoles && firstStored < position
    }

    /// Drops the oldest waiting message that is only in the store, or passes a hole there; holes
    /// count as the last positions, because only the store knows them. Returns the position; `nil`
    /// when there is none.
    public mutating func dropOldestStored() -> UInt64? {
        guard stored > 0 else { return nil }
        defer {
            passStored(
                to: firstStored + 1, messages: stored > storedHoles ? 1 : 0,
                bytes: averageStoredBytes)
        }
        return firstStored
    }

    var averageStoredBytes: Int { storedBytes / max(1, Int(stored - storedHoles)) }

    /// Frees the messages in memory, which the store also has, because the client is offline.
    public mutating func unload(pool: BytePool) {
        skipHoles()
        for offset in 0..<UInt64(span) { entry(at: head + offset).message?.release(in: pool) }
        storedInFlight += loadedInFlight
        if loadedWaiting > 0 {
            // Messages between them that were dropped or handed over leave holes.
            let firstWaiting = head + UInt64(sentSpan)
            let positions = UInt32(firstStored - firstWaiting)
            firstStored = firstWaiting
            stored += positions
            storedHoles += positions - loadedWaiting
            storedBytes += loadedBytes
        }
        head = firstStored
        (span, sentSpan, loadedInFlight, loadedWaiting, loadedBytes) = (0, 0, 0, 0, 0)
        releaseRing(pool)
    }

    /// A message that was read back from the store.
    public struct Loaded: BitwiseCopyable {
        /// The queue takes this reference over; `nil` for a QoS 2 message that only needs PUBREL.
        public var message: Message?
        public var position: UInt64
        public var qos: QoS
        public var retain: Bool
        public var group: UInt32

        public init(message: Message?, position: UInt64, qos: QoS, retain: Bool, group: UInt32) {
            self.message = message
            self.position = position
            self.qos = qos
            self.retain = retain
            self.group = group
        }
    }

    /// The position from which to load next: messages in flight first, of which some may count as
    /// waiting after a restart, then waiting ones.
    public var firstUnloaded: UInt64 {
        guard span > 0 else { return 0 }
        return storedInFlight > 0 ? head + UInt64(span) : firstStored
    }

    /// The number of positions of waiting messages to load next, at most `limit`. 0 when none is stored, or
    /// while they are too far from the oldest message in flight for packet identifiers to stay
    /// unique.
    public func loadable(_ limit: UInt32) -> UInt32 {
        let count = min(limit, stored)
        return count > 0 && canPlace(firstStored + UInt64(count) - 1) ? count : 0
    }

    /// True when the position is so near to the oldest one in memory that packet identifiers stay
    /// unique.
    public func canPlace(_ position: UInt64) -> Bool {
        span == 0 || position - head < UInt64(Self.largestSpan)
    }

    /// Puts back a message that was in flight when its client disconnected. Positions must rise
    /// from call to call.
    public mutating func placeSent(_ loaded: Loaded, pool: BytePool) {
        storedInFlight -= min(1, storedInFlight)
        loadedInFlight += 1
        push(
            Entry(
                message: loaded.message, ticket: 0,
                state: loaded.message == nil ? .released : .sent, qos: loaded.qos,
                retain: loaded.retain, group: loaded.group), at: loaded.position, pool)
        sentSpan = span
    }

    /// Passes over a message in flight that is not put back, such as an expired one.
    public mutating func skipSent(_ position: UInt64) {
        storedInFlight -= min(1, storedInFlight)
        if span == 0 { head = position + 1 }
    }

    /// Drops a message that counts as in flight, and is only in the store.
    public mutating func dropInFlight() { storedInFlight -= min(1, storedInFlight) }

    /// The position with this packet identifier among the messages in flight that are only in the
    /// store, once the first of them have been loaded. The store may have no message there any
    /// more, or one of another QoS. `nil` when no position in flight can have the identifier.
    public func storedPosition(of identifier: PacketIdentifier) -> UInt64? {
        guard storedInFlight > 0 else { return nil }
        // All messages in flight lie within one round of identifiers, and none before the head.
        let position = head + offset(of: identifier)
        return position >= head + UInt64(span) && position < firstStored ? position : nil
    }

    /// Ends the loading of messages in flight. The store no longer has those that are still
    /// missing.
    public mutating func finishPlacingSent() {
        storedInFlight = 0
        if span == 0 { head = firstStored }
    }

    /// Further messages in flight are still to be loaded, however many counted.
    public mutating func continuePlacingSent() { storedInFlight = max(1, storedInFlight) }

    /// Puts back a waiting message, which is sent once `ticket` has been committed. Positions must
    /// rise from call to call.
    public mutating func placeWaiting(_ loaded: Loaded, ticket: UInt64, pool: BytePool) {
        guard let message = loaded.message else { return }
        push(
            Entry(
                message: message, ticket: ticket, state: .waiting, qos: loaded.qos,
                retain: loaded.retain, group: loaded.group), at: loaded.position, pool)
        loadedWaiting += 1
        loadedBytes += message.contentBytes
        passStored(to: loaded.position + 1, messages: 1, bytes: message.contentBytes)
    }

    /// Passes over a waiting message of `bytes` bytes that is not put back, because another member
    /// of its group got it. Positions must rise from call to call.
    public mutating func skipWaiting(_ position: UInt64, bytes: Int) {
        passStored(to: position + 1, messages: 1, bytes: bytes)
    }

    /// The store holds no message below `position` that is not in memory; missing ones no longer
    /// count as stored.
    public mutating func finishPlacingWaiting(below position: UInt64) {
        guard position > firstStored else { return }
        let passed = UInt32(min(position, end) - firstStored)
        let missing = passed - min(passed, storedHoles)
        passStored(to: min(position, end), messages: 0, bytes: averageStoredBytes * Int(missing))
    }

    /// Passes positions with `messages` messages of `bytes` bytes; the others are holes if there are
    /// as many, else missing messages.
    mutating func passStored(to position: UInt64, messages: UInt32, bytes: Int) {
        let passed = UInt32(position - firstStored)
        stored -= passed
        storedHoles = min(stored, storedHoles - min(storedHoles, passed - messages))
        firstStored = position
        storedBytes = stored == storedHoles ? 0 : max(0, storedBytes - bytes)
    }
}
