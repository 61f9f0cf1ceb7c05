import BrokerAPI
import Synchronization
import SystemFiles
import Threads

/// Sends notifications to a push service, on a thread of its own.
///
/// Each request is answered once. The sender never holds more than ``window`` of them; what cannot
/// be sent within a minute is given back, so the broker, not this queue, keeps what is owed.
package final class PushSender: Sendable {
    /// Requests without an answer that a caller may have at most.
    package static let window = 16_384

    private let inbox: SenderInbox
    private let shared: SenderShared

    /// Starts the thread, on which both closures are called: `answers` with answers in any order,
    /// `beat` when ``limits`` or the troubles in ``figures`` change, and every few seconds.
    ///
    /// - Throws: `SystemError` or `ThreadFailure` when the system has no descriptor or thread for it.
    package init(
        _ service: PushService, _ credentials: PushCredentials,
        answers: @escaping @Sendable ([WakeAnswer]) -> Void,
        beat: @escaping @Sendable () -> Void
    ) throws {
        let inbox = try SenderInbox()
        let shared = SenderShared()
        self.inbox = inbox
        self.shared = shared
        let name = service.kind == .apns ? "hermes-apns" : "hermes-fcm"
        try WorkerThread.start(name: name) {
            guard let provider = service.provider(credentials) else { return }
            let loop = SenderLoop(provider, inbox, shared, answers, beat)
            loop.run()
        }
    }

    /// Makes a batch of requests; called once, on the sender's thread.
    package typealias Batch = @Sendable () -> [NotificationRequest]

    /// Hands requests over, from any thread. That thread does not spend time on making them.
    package func send(_ batch: @escaping Batch) { inbox.change { $0.batches.append(batch) } }

    /// Takes hand-outs back that are of no use any more, from any thread.
    package func withdraw(_ handOuts: [HandOut]) {
        inbox.change { $0.withdrawn += handOuts }
    }

    /// Takes credentials that were read anew, for connections and tokens from now on.
    package func use(_ credentials: PushCredentials) {
        inbox.change { $0.credentials = credentials }
    }

    /// What the sender has no use for now, of which the broker keeps its wakes.
    package var limits: [WakeDemand.Limit] { shared.limits }

    package var figures: PushFigures { shared.figures }

    /// Gives back what is left and ends the thread.
    package func stop() { inbox.change { $0.isStopping = true } }
}

/// What the sender's thread tells the others.
final class SenderShared: Sendable {
    private struct State {
        var figures = PushFigures()
        var limits: [WakeDemand.Limit] = []
    }

    private let state = Mutex(State())

    var figures: PushFigures { state.withLock { $0.figures } }

    var limits: [WakeDemand.Limit] { state.withLock { $0.limits } }

    func publish(_ figures: PushFigures, _ limits: [WakeDemand.Limit]) {
        state.withLock { $0 = State(figures: figures, limits: limits) }
    }
}
