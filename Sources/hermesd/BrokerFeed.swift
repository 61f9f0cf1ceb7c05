import BrokerAPI
import BrokerRuntime
import Webhook

/// The webhook's way to the shard.
struct BrokerFeed: ReceiptFeed {
    let broker: BrokerThread

    func events(after number: UInt64, most: Int) async -> [ReceiptEvent]? {
        // A stream, because its reader stops waiting when its task is cancelled.
        let (answers, answer) = AsyncStream.makeStream(
            of: BrokerAnswer<[ReceiptEvent]>.self, bufferingPolicy: .bufferingNewest(1))
        broker.send(
            .receiptEvents(after: number, most: most) {
                answer.yield($0)
                answer.finish()
            })
        for await result in answers { return try? result.get() }
        return nil
    }

    func take(through number: UInt64) { broker.send(.receiptEventsTaken(through: number)) }
}
