import PushServices
import BrokerAPI
import CLinux
import Logging
import OperatorLog
import PlainText
import Synchronization

/// Brings owed wakes from the broker to a push service, and the answers back.
///
/// It asks the broker for as many as the sender has room for, and for none of services and apps in
/// trouble: so the broker keeps what is owed, and this side holds a bounded number.
package final class ServiceWakes: Sendable {
    private struct State {
        var sender: PushSender?
        /// Wakes that the sender has not answered.
        var open = 0
        /// Answers that the broker was too busy to take.
        var untold: [WakeAnswer] = []
        var outage = Outage()
    }

    private let kind: Device.Kind
    /// How operators know the service.
    private let name: String
    private let feed: any WakeFeed
    private let logger: Logger
    private let state = Mutex(State())

    /// Starts the sender's thread and asks for wakes.
    package init(
        _ service: PushService, _ credentials: PushCredentials, feed: some WakeFeed,
        logger: Logger
    ) throws {
        kind = service.kind
        name = service.name
        self.feed = feed
        self.logger = logger
        let sender = try PushSender(service, credentials) { [weak self] answers in
            self?.take(answers)
        } beat: { [weak self] in
            self?.look()
        }
        state.withLock { $0.sender = sender }
        ask()
    }

    package var figures: PushFigures { sender?.figures ?? PushFigures() }

    package func use(_ credentials: PushCredentials) { sender?.use(credentials) }

    /// Ends the sender; what it has not answered is owed again.
    package func stop() { sender?.stop() }

    private var sender: PushSender? { state.withLock { $0.sender } }

    /// Asks the broker for as many wakes as there is room for. A further demand takes the place of
    /// one that stands, or that a busy broker has lost.
    private func ask() {
        let (sender, open) = state.withLock { ($0.sender, $0.open) }
        guard let sender, open < PushSender.window else { return }
        feed.next(
            kind,
            WakeDemand(
                most: PushSender.window - open, limits: sender.limits,
                take: { [weak self] in self?.send($0) },
                withdraw: { [weak sender] in sender?.withdraw($0) }))
    }

    private func send(_ wakes: [Wake]) {
        let sender = state.withLock { state in
            state.open += wakes.count
            return state.sender
        }
        sender?.send { wakes.map { NotificationRequest($0) } }
        ask()
    }

    private func take(_ answers: [WakeAnswer]) {
        let (wasFull, all) = state.withLock { state in
            defer {
                state.open -= answers.count
                state.untold = []
            }
            return (state.open >= PushSender.window, state.untold + answers)
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
        logger.notice("Notifications are sent to \(name) again")
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
                "No notifications are sent to \(name) for a while",
                metadata: metadata.suppressing(suppressed))
        } else {
            logger.warning(
                "\(name) refuses many devices, which are set aside",
                metadata: metadata.suppressing(suppressed))
        }
    }
}

extension NotificationRequest {
    /// The notification of a wake.
    init(_ wake: Wake) {
        let payload =
            switch wake.device.kind {
            case .apns, .webhook:
                NotificationPayload.bytes(of: wake, at: hermes_wall_ms() / 1_000)
            case .fcm: GoogleMessage.bytes(of: wake, at: hermes_wall_ms() / 1_000)
            }
        self.init(
            handOut: wake.handOut, token: wake.device.token, environment: wake.device.environment,
            topic: wake.device.bundle, kind: wake.kind,
            expiration: wake.isTriedOnce ? 0 : wake.expiresAt,
            collapseID: wake.collapseID, notificationID: wake.notificationID, payload: payload)
        attempt = wake.attempt
        priority = wake.rule?.priority
    }
}
