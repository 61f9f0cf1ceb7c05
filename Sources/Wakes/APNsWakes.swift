import APNs
import BrokerAPI
import CLinux
import Logging
import OperatorLog
import PlainText
import Synchronization

/// Brings owed wakes from the broker to Apple, and the answers back.
///
/// It asks the broker for as many as the sender has room for, and for none while the sender pauses:
/// so the broker keeps what is owed, and this side holds a bounded number.
package final class APNsWakes: Sendable {
    private struct State {
        var sender: APNsSender?
        /// Wakes that the sender has not answered.
        var open = 0
        var outage = Outage()
    }

    private let feed: any WakeFeed
    private let logger: Logger
    private let state = Mutex(State())

    /// Starts the sender's thread and asks for wakes.
    package init(
        _ settings: APNsSettings, _ credentials: APNsCredentials, feed: some WakeFeed,
        logger: Logger
    ) throws {
        self.feed = feed
        self.logger = logger
        let sender = try APNsSender(settings, credentials) { [weak self] answers in
            self?.take(answers)
        } beat: { [weak self] in
            self?.look()
        }
        state.withLock { $0.sender = sender }
        ask()
    }

    package var figures: PushFigures { sender?.figures ?? PushFigures() }

    package func use(_ credentials: APNsCredentials) { sender?.use(credentials) }

    /// Ends the sender; what it has not answered is owed again.
    package func stop() { sender?.stop() }

    private var sender: APNsSender? { state.withLock { $0.sender } }

    /// Asks the broker for as many wakes as there is room for. A further request takes the place of
    /// one that stands, or that a busy broker has lost.
    private func ask() {
        let (sender, open) = state.withLock { ($0.sender, $0.open) }
        guard let sender, sender.pauseMilliseconds == 0, open < APNsSender.window else { return }
        feed.next(.apns, most: APNsSender.window - open) { [weak self] in self?.send($0) }
    }

    private func send(_ wakes: [Wake]) {
        let sender = state.withLock { state in
            state.open += wakes.count
            return state.sender
        }
        sender?.send { wakes.map { APNsRequest($0) } }
        ask()
    }

    private func take(_ answers: [WakeAnswer]) {
        let wasFull = state.withLock { state in
            defer { state.open -= answers.count }
            return state.open >= APNsSender.window
        }
        feed.answer(answers)
        noteSuccess(answers)
        // While there was room, a request of ours stands.
        if wasFull { ask() }
    }

    /// Looks at the sender, which has begun or ended to pause, or goes on as before.
    private func look() {
        guard let sender else { return }
        if let pause = sender.figures.pause { log(pause) }
        ask()
    }

    private func noteSuccess(_ answers: [WakeAnswer]) {
        guard answers.contains(where: { $0.outcome == .accepted }), let sender,
            sender.figures.pause == nil, state.withLock({ $0.outage.endsWithSuccess() })
        else { return }
        logger.notice("Notifications are sent to Apple again")
    }

    private func log(_ pause: PushFigures.Pause) {
        let suppressed = state.withLock {
            $0.outage.isPaused(pause.reason, atMilliseconds: hermes_monotonic_ms())
        }
        guard let suppressed else { return }
        let metadata: Logger.Metadata = [
            LogKeys.reason: "\(VisibleText.escaped(pause.reason, limit: 300))",
            LogKeys.hint: "\(pause.hint)",
        ]
        logger.error(
            "No notifications are sent to Apple for a while",
            metadata: metadata.suppressing(suppressed))
    }
}

extension APNsRequest {
    /// The notification of a wake.
    init(_ wake: Wake) {
        self.init(
            id: wake.id, token: wake.device.token, environment: wake.device.environment,
            topic: wake.device.bundle, kind: wake.kind, expiration: wake.expiresAt,
            collapseID: wake.collapseID, notificationID: wake.notificationID,
            payload: NotificationPayload.bytes(of: wake))
    }
}
