import BrokerAPI
import Structures

extension Receipts {
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
                        outcome: outcome, reason: receiver.reason.name, atMs: receiver.atMs))
            }
            place = receiver.after
        }
        return found
    }
}
