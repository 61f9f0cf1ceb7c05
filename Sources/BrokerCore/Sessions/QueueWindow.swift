import MQTTCore

/// The part of a connected persistent session's queue that memory holds; the store has all of it.
package enum QueueWindow {
    /// Waiting messages, and their bytes, that one load reads or a window holds.
    package static let messages: UInt32 = 64
    package static let bytes = 256 * 1_024
    /// With fewer waiting messages in memory, the next ones are loaded.
    private static let lowWater: UInt32 = 32

    /// True when a new message of `count` bytes, its ``Message/contentBytes``, stays in memory.
    package static func takes(_ count: Int, _ queue: OutboundQueue, queueBytes: Int) -> Bool {
        guard !queue.isStoring, !queue.isFull else { return false }
        return queue.loadedWaiting == 0
            || (queue.loadedWaiting < messages
                && queue.waitingBytes + count <= min(bytes, queueBytes))
    }

    /// True when messages that were in flight are to be loaded and sent again: at least half of the
    /// in-flight window has room, so that not every acknowledgement costs a read.
    package static func resends(_ queue: OutboundQueue, limit: UInt32) -> Bool {
        queue.storedInFlight > 0 && queue.loadedInFlight <= limit / 2
    }

    /// The number of waiting messages to load now. Messages in flight come first, since their
    /// lowest identifier limits the positions of others.
    package static func waitingToLoad(_ queue: OutboundQueue) -> UInt32 {
        queue.storedInFlight == 0 && queue.loadedWaiting < lowWater ? queue.loadable(messages) : 0
    }
}
