import MQTTCodec
import Structures

/// Pending acknowledgements of slow subscribers, first in, first out, as all wait equally long.
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

    /// Time of the next one; `nil` without any.
    var nextDue: UInt64? { isEmpty ? nil : entries[0].due }

    /// Keeps an answer; its time must not be before that of the one kept last.
    mutating func append(_ entry: Entry) {
        assert(isEmpty || entries[entries.count - 1].due <= entry.due, "answers out of order")
        entries.append(entry)
    }

    /// Takes the oldest one that is due by `now`; `nil` when none is.
    mutating func removeNext(dueBy now: UInt64) -> Entry? {
        guard !isEmpty, entries[0].due <= now else { return nil }
        let entry = entries[0]
        entries.removeFirst()
        return entry
    }
}
