import BrokerAPI
import BrokerCore
import Structures

/// The events that tell the webhook of the ends of receivers.
extension Receipts {
    /// The time at which a request for events is answered with none; `nil` without one.
    var deadline: MonotonicTime? { events.deadline }

    mutating func appendEvent(_ place: UInt32) {
        lists.append(place, to: lists.events, &receivers)
        events.count += 1
    }

    /// The first events with higher numbers than `number`, at most `most`, that are committed.
    func events(
        after number: UInt64, most: Int, isCommitted: (UInt64) -> Bool
    ) -> [ReceiptEvent] {
        var found: [ReceiptEvent] = []
        var place = lists.first(of: lists.events)
        while place != noIndex, found.count < most, isCommitted(receivers[place].position) {
            let receiver = receivers[place]
            if receiver.event > number, let outcome = receiver.outcome.event {
                let record = records[receiver.receipt]
                found.append(
                    ReceiptEvent(
                        number: receiver.event,
                        messageID: String(decoding: record.messageID.array, as: UTF8.self),
                        topic: String(decoding: record.topic.array, as: UTF8.self),
                        clientID: String(decoding: receiver.client.array, as: UTF8.self),
                        outcome: outcome, reason: receiver.reason.name,
                        replacedBy: receiver.replacement, atMs: receiver.atMs))
            }
            place = receiver.after
        }
        return found
    }

    /// Drops the events up to a number; false when there are none.
    mutating func takeEvents(through number: UInt64) -> Bool {
        var hasTaken = false
        while case let place = lists.first(of: lists.events), place != noIndex,
            receivers[place].event <= number
        {
            removeEvent(place)
            hasTaken = true
        }
        if hasTaken { events.taken = number }
        return hasTaken
    }

    mutating func removeEvent(_ place: UInt32) {
        lists.remove(place, &receivers)
        events.count -= 1
    }
}
