import BrokerAPI
import Synchronization

@testable import Webhook

/// An event with that number.
func event(_ number: UInt64, topic: String = "orders/7") -> ReceiptEvent {
    ReceiptEvent(
        number: number, messageID: "m-\(number)", topic: topic, clientID: "phone-7",
        outcome: .acknowledged, atMs: 1_700_000_000_000)
}

extension WebhookRequest {
    func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }

    /// The numbers of the events in the body.
    var numbers: [UInt64] {
        String(decoding: body, as: UTF8.self).matches(of: #/"number":(\d+)/#)
            .compactMap { UInt64($0.1) }
    }
}

/// Events that wait, of which the sender gets a bounded number at a time.
final class FakeFeed: ReceiptFeed {
    private struct State {
        var events: [ReceiptEvent]
        var most: Int
        /// Calls that the broker does not answer.
        var failures: Int
        var taken: [UInt64] = []
    }

    private let state: Mutex<State>

    init(_ events: [ReceiptEvent], most: Int, failures: Int = 0) {
        state = Mutex(State(events: events, most: most, failures: failures))
    }

    /// The numbers up to which events were taken.
    var taken: [UInt64] { state.withLock { $0.taken } }

    func events(after number: UInt64, most: Int) async -> [ReceiptEvent]? {
        let events = state.withLock { state -> [ReceiptEvent]? in
            guard state.failures == 0 else {
                state.failures -= 1
                return nil
            }
            return Array(
                state.events.filter { $0.number > number }.prefix(min(most, state.most)))
        }
        // Nothing more will come: the real feed waits.
        if events?.isEmpty == true { await untilCancelled() }
        return events
    }

    func take(through number: UInt64) {
        state.withLock { if number > $0.taken.last ?? 0 { $0.taken.append(number) } }
    }
}

/// Gives prepared replies, and 200 after them; `received` is called with the number of requests.
final class FakeReceiver: WebhookTransport {
    private let replies: Mutex<[WebhookReply]>
    private let state = Mutex((requests: [WebhookRequest](), isClosed: false))
    private let received: @Sendable (Int) async -> Void

    init(
        _ replies: [WebhookReply] = [], received: @escaping @Sendable (Int) async -> Void = { _ in }
    ) {
        self.replies = Mutex(replies)
        self.received = received
    }

    var requests: [WebhookRequest] { state.withLock { $0.requests } }
    var isClosed: Bool { state.withLock { $0.isClosed } }

    func send(_ request: WebhookRequest, _ files: WebhookFiles) async -> WebhookReply {
        let count = state.withLock { state in
            state.requests.append(request)
            return state.requests.count
        }
        await received(count)
        return replies.withLock { $0.isEmpty ? .accepted : $0.removeFirst() }
    }

    func close() { state.withLock { $0.isClosed = true } }
}

/// A clock that every pause advances at once.
final class FakeTime: Sendable {
    private let state = Mutex((seconds: Duration.zero, pauses: [Duration]()))

    var pauses: [Duration] { state.withLock { $0.pauses } }

    var webhookTime: WebhookTime {
        WebhookTime(
            now: { 1_700_000_000 + self.state.withLock { $0.seconds.components.seconds } },
            sleep: { pause in
                self.state.withLock { state in
                    state.seconds += pause
                    state.pauses.append(pause)
                }
            },
            random: { 1 })
    }
}

/// Returns once the task is cancelled.
func untilCancelled() async {
    let (stream, _) = AsyncStream.makeStream(of: Never.self)
    for await _ in stream {}
}
