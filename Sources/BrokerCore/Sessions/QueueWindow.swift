import MQTTCore

/// The part of a persistent session's queue that memory holds while its client is connected; the store has
/// the whole queue.
enum QueueWindow {
    /// Waiting messages, and their bytes, that one load brings or a window takes.
    static let messages: UInt32 = 64
    static let bytes = 256 * 1_024
    /// Below so many waiting messages the next ones are loaded.
    private static let lowWater: UInt32 = 32

    /// Whether a new message of `count` bytes stays in memory.
    static func takes(_ count: Int, _ queue: OutboundQueue, queueBytes: Int) -> Bool {
        guard !queue.isStoring, !queue.isFull else { return false }
        return queue.loadedWaiting == 0
            || (queue.loadedWaiting < messages
                && queue.waitingBytes + count <= min(bytes, queueBytes))
    }

    /// The waiting messages that are to be loaded now. Messages in flight come first: where their
    /// identifiers begin says how far others may go.
    static func waitingToLoad(_ queue: OutboundQueue) -> UInt32 {
        queue.storedInFlight == 0 && queue.loadedWaiting < lowWater ? queue.loadable(messages) : 0
    }
}
