import NIOConcurrencyHelpers
import NIOCore

/// The way of messages to the app, and of its acknowledgements back.
///
/// The core keeps the messages; a few wait in the mailbox, so that most are taken without a change
/// of the thread. Acknowledgements are gathered, and the event loop is woken once for many.
final class DeliveryInlet: Sendable {
    /// Messages in the mailbox, which is filled again when half of them are taken.
    static let mostReady = 64

    let mailbox = Mailbox<HermesClient.Delivery>(mostElements: mostReady)
    private let acknowledged = NIOLockedValueBox<[UInt64]>([])
    /// The core has more messages than the mailbox took.
    private let hasMore = NIOLockedValueBox(false)
    private let engine: EngineReference

    init(engine: EngineReference) { self.engine = engine }

    func take(since: Int) async -> HermesClient.Delivery? {
        let delivery = await mailbox.take(since: since)
        if mailbox.count <= Self.mostReady / 2, askForMore() {
            engine.execute { $0.fillInlet() }
        }
        return delivery
    }

    func acknowledge(_ number: UInt64) {
        let isFirst = acknowledged.withLockedValue { numbers in
            numbers.append(number)
            return numbers.count == 1
        }
        if isFirst { engine.execute { $0.takeAcknowledgements() } }
    }

    /// True once after each time that the mailbox was filled and the core had more.
    private func askForMore() -> Bool {
        hasMore.withLockedValue { hasMore in
            defer { hasMore = false }
            return hasMore
        }
    }

    // MARK: On the event loop

    func takeAcknowledged() -> [UInt64] {
        acknowledged.withLockedValue { numbers in
            defer { numbers.removeAll(keepingCapacity: true) }
            return numbers
        }
    }

    /// Puts messages into the mailbox while it has room.
    func fill(from next: () -> HermesClient.Delivery?) {
        // Before the first message is put: its taker may be the one that asks for more.
        hasMore.withLockedValue { $0 = true }
        for _ in 0..<max(Self.mostReady - mailbox.count, 0) {
            guard let delivery = next() else {
                hasMore.withLockedValue { $0 = false }
                return
            }
            mailbox.put(delivery)
        }
    }
}
