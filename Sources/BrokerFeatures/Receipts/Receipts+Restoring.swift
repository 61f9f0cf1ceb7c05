import BrokerCore
import Store
import Structures

/// Receipts during a start.
extension Receipts {
    mutating func restore(_ progress: ReceiptProgress) {
        lastNumber = max(lastNumber, progress.begin == 0 ? 0 : progress.begin - 1)
        events.restore(progress)
    }

    /// Keeps a number that the store holds from being given again.
    mutating func noteStored(_ number: UInt64) { lastNumber = max(lastNumber, number) }

    /// Restores a receipt; numbers come in rising order.
    mutating func restore(_ stored: StoredReceipt, pool: BytePool) {
        noteStored(stored.number)
        let place = stored.messageID.withUnsafeBytes { messageID in
            stored.topic.withUnsafeBytes { topic in
                insert(
                    Record(
                        number: stored.number, atMs: stored.atMs, owner: stored.owner,
                        messageID: CompactBytes(messageID, pool: pool),
                        topic: CompactBytes(topic, pool: pool)))
            }
        }
        restored.append((stored.number, place))
    }

    /// The place of a restored receipt; `nil` for one that is not in the store.
    func restored(_ number: UInt64) -> UInt32? {
        var (low, high) = (0, restored.count)
        while low < high {
            let middle = (low + high) / 2
            if restored[middle].number < number { low = middle + 1 } else { high = middle }
        }
        guard low < restored.count, restored[low].number == number else { return nil }
        return restored[low].place
    }

    /// Restores the end of a receiver that was added last.
    mutating func restore(_ end: ReceiverEnd, of place: UInt32) {
        let outcome = ReceiverOutcome(rawValue: end.outcome) ?? .dropped
        receivers[place].outcome = outcome
        receivers[place].reason = ReceiverReason(number: end.reason)
        receivers[place].atMs = end.atMs
        receivers[place].event = end.event
        records[receivers[place].receipt].counts.add(outcome)
        events.restore(end.event, of: place)
    }

    /// Restores what is told of a receiver that was added last; other places have none.
    mutating func restore(_ detail: ReceiverDetail, pool: BytePool) {
        guard let receipt = restored(detail.receipt), case let last = records[receipt].lastReceiver,
            last != noIndex, receivers[last].place == detail.place, receivers[last].detail.isEmpty
        else { return }
        receivers[last].detail = detail.text.withUnsafeBytes { CompactBytes($0, pool: pool) }
    }

    /// Puts the events in their order.
    mutating func finishRestoring() {
        for place in events.takeRestored() {
            receivers[place].position = 0
            appendEvent(place)
        }
        restored = []
    }
}
