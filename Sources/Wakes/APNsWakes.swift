import APNs
import BrokerAPI
import CLinux
import Logging
import OperatorLog
import PlainText
import Synchronization

/// Brings owed wakes from the broker to Apple, and the answers back.
///
/// It asks the broker for as many as the sender has room for, and for none of services and apps in
/// trouble: so the broker keeps what is owed, and this side holds a bounded number.
package final class APNsWakes: Sendable {
    private struct State {
        var sender: APNsSender?
        /// Wakes that the sender has not answered.
        var open = 0
        /// Answers that the broker was too busy to take.
        var untold: [WakeAnswer] = []
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

    /// Asks the broker for as many wakes as there is room for. A further demand takes the place of
    /// one that stands, or that a busy broker has lost.
    private func ask() {
        let (sender, open) = state.withLock { ($0.sender, $0.open) }
        guard let sender, open < APNsSender.window else { return }
        feed.next(
            .apns,
            WakeDemand(
                most: APNsSender.window - open, limits: sender.limits,
                take: { [weak self] in self?.send($0) },
                withdraw: { [weak sender] in sender?.withdraw($0) }))
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
        let (wasFull, all) = state.withLock { state in
            defer {
                state.open -= answers.count
                state.untold = []
            }
            return (state.open >= APNsSender.window, state.untold + answers)
        }
        if !feed.answer(all) { state.withLock { $0.untold = all } }
        noteSuccess(answers)
        // While there was room, a demand of ours stands.
        if wasFull { ask() }
    }

    /// Looks at the sender, which has got into or out of trouble, or goes on as before.
    private func look() {
        guard let sender else { return }
        if state.withLock({ !$0.untold.isEmpty }) { take([]) }
        for trouble in sender.figures.troubles { log(trouble) }
        ask()
    }

    private func noteSuccess(_ answers: [WakeAnswer]) {
        guard answers.contains(where: { $0.outcome == .accepted }), let sender,
            sender.figures.paused == 0, state.withLock({ $0.outage.endsWithSuccess() })
        else { return }
        logger.notice("Notifications are sent to Apple again")
    }

    private func log(_ trouble: PushFigures.Trouble) {
        let suppressed = state.withLock {
            $0.outage.admit(
                trouble.reason, isPaused: trouble.isPaused, atMilliseconds: hermes_monotonic_ms())
        }
        guard let suppressed else { return }
        let metadata: Logger.Metadata = [
            LogKeys.reason: "\(VisibleText.escaped(trouble.reason, limit: 300))",
            LogKeys.hint: "\(trouble.hint)",
        ]
        if trouble.isPaused {
            logger.error(
                "No notifications are sent to Apple for a while",
                metadata: metadata.suppressing(suppressed))
        } else {
            logger.warning(
                "Apple refuses many devices, which are set aside",
                metadata: metadata.suppressing(suppressed))
        }
    }
}

extension APNsRequest {
    /// The notification of a wake.
    init(_ wake: Wake) {
        self.init(
            handOut: wake.handOut, token: wake.device.token, environment: wake.device.environment,
            topic: wake.device.bundle, kind: wake.kind,
            // Apple tries once what has no time, and keeps nothing of it.
            expiration: wake.rule?.expiresInSeconds == 0 ? 0 : wake.expiresAt,
            collapseID: wake.collapseID, notificationID: wake.notificationID,
            payload: NotificationPayload.bytes(of: wake))
        attempt = wake.attempt
        priority = wake.rule?.priority
    }
}
