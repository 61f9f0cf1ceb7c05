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

    /// Takes the oldest one that is due by `now`; `nil` when none is.
    mutating func removeNext(dueBy now: UInt64) -> Entry? {
        guard !isEmpty, entries[0].due <= now else { return nil }
        let entry = entries[0]
        entries.removeFirst()
        return entry
    }
}
