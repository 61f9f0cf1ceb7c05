import MQTTCodec
import Structures

/// Answers that slow subscribers still owe; all of them wait equally long, so first in, first out.
struct LateAcknowledgements: ~Copyable {
    struct Entry: BitwiseCopyable {
        /// Monotonic nanoseconds.
        var due: UInt64
        var client: UInt32
        /// PUBACK or PUBREC.
        var type: PacketType
        var identifier: PacketIdentifier
    }

    private var entries = RingBuffer<Entry>()

    var isEmpty: Bool { entries.count == 0 }

    /// When the next one is to leave; `nil` when none is owed.
    var nextDue: UInt64? { isEmpty ? nil : entries[0].due }

    /// Keeps an answer; its time must not be before that of the one kept last.
    mutating func append(_ entry: Entry) {
        assert(isEmpty || entries[entries.count - 1].due <= entry.due, "answers out of order")
        entries.append(entry)
    }

    /// Hands all that are due to their connections.
    mutating func send(now: UInt64, _ sockets: inout ClientSockets) {
        while !isEmpty, entries[0].due <= now {
            let entry = entries[0]
            sockets.acknowledge(entry.client, entry.type, entry.identifier)
            entries.removeFirst()
        }
    }
}
