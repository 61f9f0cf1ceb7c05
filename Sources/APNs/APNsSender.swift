import BrokerAPI
import CLinux
import Synchronization
import SystemFiles
import Threads

/// Sends notifications to Apple's push service, on a thread of its own.
///
/// Each request is answered once. The sender never holds more than ``window`` of them; what cannot
/// be sent now comes back with `later`, so the broker, not this queue, keeps what is owed.
package final class APNsSender: Sendable {
    /// Requests without an answer that a caller may have at most.
    package static let window = 16_384

    private let inbox: SenderInbox
    private let shared: SenderShared

    /// Starts the thread, on which both closures are called: `answers` with answers in any order,
    /// `beat` when the sender begins or ends to pause, and every few seconds.
    ///
    /// - Throws: `SystemError` or `ThreadFailure` when the system has no descriptor or thread for it.
    package init(
        _ settings: APNsSettings, _ credentials: APNsCredentials,
        answers: @escaping @Sendable ([WakeAnswer]) -> Void,
        beat: @escaping @Sendable () -> Void
    ) throws {
        let inbox = try SenderInbox()
        let shared = SenderShared()
        self.inbox = inbox
        self.shared = shared
        try WorkerThread.start(name: "hermes-apns") {
            let loop = SenderLoop(settings, credentials, inbox, shared, answers, beat)
            loop.run()
        }
    }

    /// Makes a batch of requests; called once, on the sender's thread.
    package typealias Batch = @Sendable () -> [APNsRequest]

    /// Hands requests over, from any thread. That thread does not spend time on making them.
    package func send(_ batch: @escaping Batch) { inbox.change { $0.batches.append(batch) } }

    /// Takes credentials that were read anew, for connections and tokens from now on.
    package func use(_ credentials: APNsCredentials) {
        inbox.change { $0.credentials = credentials }
    }

    /// Milliseconds for which it makes no sense to hand over requests; 0 when they are sent.
    package var pauseMilliseconds: UInt64 { shared.pauseMilliseconds }

    package var figures: PushFigures { shared.figures }

    /// Answers what is left with `later` and ends the thread.
    package func stop() { inbox.change { $0.isStopping = true } }
}

/// What the sender's thread tells the others.
final class SenderShared: Sendable {
    private struct State {
        var figures = PushFigures()
        var pausedUntil: UInt64 = 0
    }

    private let state = Mutex(State())

    var figures: PushFigures { state.withLock { $0.figures } }

    var pauseMilliseconds: UInt64 {
        let until = state.withLock { $0.pausedUntil }
        let now = hermes_monotonic_ms()
        return until > now ? until - now : 0
    }

    func publish(_ figures: PushFigures, until pausedUntil: UInt64) {
        state.withLock { $0 = State(figures: figures, pausedUntil: pausedUntil) }
    }
}
