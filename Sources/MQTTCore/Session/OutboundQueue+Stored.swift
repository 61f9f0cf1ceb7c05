import MQTTCodec
import Structures

/// The part of a queue that only the store holds.
extension OutboundQueue {
    /// Gives the next position to a message of so many bytes that only the store keeps.
    public mutating func store(bytes: Int) -> UInt64 {
        let position = end
        stored += 1
        storedBytes += bytes
        return position
    }

    /// Gives up the oldest message that waits in the store; its position, or `nil` when none does.
    public mutating func dropOldestStored() -> UInt64? {
        guard stored > 0 else { return nil }
        defer { passStored(to: firstStored + 1, bytes: storedBytes / Int(stored)) }
        return firstStored
    }

    /// Forgets what is in memory, because the store has it and the client is away.
    public mutating func unload(pool: BytePool) {
        skipHoles()
        for offset in 0..<UInt64(span) { entry(at: head + offset).message?.release(in: pool) }
        storedInFlight += loadedInFlight
        let firstWaiting = head + UInt64(sentSpan)
        if loadedWaiting > 0, firstStored - firstWaiting == UInt64(loadedWaiting) {
            firstStored = firstWaiting
            stored += loadedWaiting
            storedBytes += loadedBytes
        } else {
            // Messages between these were dropped: what waits in the store has no holes, so they
            // count among those that may have been sent.
            storedInFlight += loadedWaiting
        }
        head = firstStored
        (span, sentSpan, loadedInFlight, loadedWaiting, loadedBytes) = (0, 0, 0, 0, 0)
        releaseRing(pool)
    }

    /// A message as the store gave it back.
    public struct Loaded: BitwiseCopyable {
        /// The queue takes the reference over; `nil` when only the PUBREL is owed.
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

    /// Where loading goes on: with what was in flight, else with what waits.
    public var firstUnloaded: UInt64 {
        guard storedInFlight > 0 else { return firstStored }
        return span == 0 ? 0 : head + UInt64(span)
    }

    /// How many positions of those that wait may be loaded now, at most `limit`.
    public func loadable(_ limit: UInt32) -> UInt32 {
        let count = min(limit, stored)
        return count > 0 && canPlace(firstStored + UInt64(count) - 1) ? count : 0
    }

    /// Whether a position is near enough to what is in flight for identifiers to stay unique.
    public func canPlace(_ position: UInt64) -> Bool {
        span == 0 || position - head < UInt64(Self.largestSpan)
    }

    /// Puts back a message that was in flight when its client went away; positions rise.
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

    /// One of those that were in flight is not put back.
    public mutating func skipSent() { storedInFlight -= min(1, storedInFlight) }

    /// All that was in flight has been put back; what was missing is lost.
    public mutating func finishPlacingSent() { storedInFlight = 0 }

    /// Puts back a message that waits, to be sent once `ticket` is committed; positions rise.
    public mutating func placeWaiting(_ loaded: Loaded, ticket: UInt64, pool: BytePool) {
        guard let message = loaded.message else { return }
        push(
            Entry(
                message: message, ticket: ticket, state: .waiting, qos: loaded.qos,
                retain: loaded.retain, group: loaded.group), at: loaded.position, pool)
        loadedWaiting += 1
        loadedBytes += message.count
        passStored(to: loaded.position + 1, bytes: message.count)
    }

    /// The store has nothing below this position any more that is not in memory.
    public mutating func finishPlacingWaiting(below position: UInt64) {
        guard position > firstStored else { return }
        let passed = Int(min(position, end) - firstStored)
        passStored(
            to: min(position, end), bytes: stored > 0 ? storedBytes / Int(stored) * passed : 0)
    }

    private mutating func passStored(to position: UInt64, bytes: Int) {
        stored -= UInt32(position - firstStored)
        firstStored = position
        storedBytes = stored == 0 ? 0 : max(0, storedBytes - bytes)
    }
}
