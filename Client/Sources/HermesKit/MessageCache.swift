import NIOCore

/// The messages that came lately, for an app that shows them: 500, 1 MiB of payloads, 24 hours,
/// whichever is reached first; the oldest leave.
struct MessageCache {
    static let mostMessages = 500
    static let mostBytes = 1 << 20
    static let mostMilliseconds: Int64 = 24 * 3_600 * 1_000

    /// The oldest first.
    private var messages = CircularBuffer<HermesClient.ReceivedMessage>()
    private var bytes = 0

    mutating func insert(_ message: HermesClient.ReceivedMessage) {
        messages.append(message)
        bytes += Self.size(message)
        while messages.count > Self.mostMessages || bytes > Self.mostBytes { removeOldest() }
    }

    /// The messages of the last 24 hours before `now`, a UNIX time in milliseconds.
    mutating func all(at now: Int64) -> [HermesClient.ReceivedMessage] {
        while let first = messages.first,
            now - first.receivedAtMilliseconds > Self.mostMilliseconds
        {
            removeOldest()
        }
        return Array(messages)
    }

    private mutating func removeOldest() { bytes -= Self.size(messages.removeFirst()) }

    private static func size(_ message: HermesClient.ReceivedMessage) -> Int {
        message.topic.utf8.count + message.payload.count
    }
}
