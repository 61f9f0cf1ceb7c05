import APNs
import BrokerAPI
import Logging
import OperatorLog
import PlainText
import Synchronization

/// Brings owed wakes from the broker to Apple, and the answers back.
///
/// It asks the broker for as many as the sender has room for, and for none while the sender pauses:
/// so the broker keeps what is owed, and this side holds a bounded number.
package final class APNsWakes: Sendable {
    /// Time after which a request for wakes is repeated: the broker may have lost it.
    private static let repeatInterval = Duration.seconds(5)
    /// Time between two lines about a pause that lasts.
    private static let lineInterval = Duration.seconds(600)

    private let feed: any WakeFeed
    private let logger: Logger
    private let sender = Mutex<APNsSender?>(nil)
    /// Wakes that the sender has not answered.
    private let open = Mutex(0)

    /// Starts the sender's thread.
    package init(
        _ settings: APNsSettings, _ credentials: APNsCredentials, feed: some WakeFeed,
        logger: Logger
    ) throws {
        self.feed = feed
        self.logger = logger
        let sender = try APNsSender(settings, credentials) { [weak self] answers in
            self?.take(answers)
        }
        self.sender.withLock { $0 = sender }
    }

    package var figures: APNsFigures { sender.withLock { $0?.figures } ?? APNsFigures() }

    package func use(_ credentials: APNsCredentials) {
        sender.withLock { $0 }?.use(credentials)
    }

    /// Asks for wakes until the task is cancelled, then ends the sender.
    package func run() async {
        var limiter = LogLimiter(maximumKeys: 8)
        var pause: String?
        while !Task.isCancelled {
            ask()
            let found = figures.pause
            log(found, instead: pause, &limiter)
            pause = found
            try? await Task.sleep(for: found == nil ? Self.repeatInterval : .seconds(1))
        }
        sender.withLock { $0 }?.stop()
    }

    /// Asks the broker for as many wakes as there is room for.
    private func ask() {
        guard let sender = sender.withLock({ $0 }), sender.pauseMilliseconds == 0 else { return }
        let room = APNsSender.window - open.withLock { $0 }
        guard room > 0 else { return }
        feed.next(.apns, most: room) { [weak self] in self?.send($0) }
    }

    private func send(_ wakes: [Wake]) {
        open.withLock { $0 += wakes.count }
        sender.withLock { $0 }?.send(wakes.map { APNsRequest($0) })
        ask()
    }

    private func take(_ answers: [WakeAnswer]) {
        let before = open.withLock { open in
            defer { open -= answers.count }
            return open
        }
        feed.answer(answers)
        // While there is room, a request of ours stands already.
        if before >= APNsSender.window { ask() }
    }

    private func log(_ pause: String?, instead former: String?, _ limiter: inout LogLimiter) {
        guard let pause else {
            if former != nil { logger.notice("Notifications are sent to Apple again") }
            return
        }
        let suppressed = limiter.admit(
            pause, every: Self.lineInterval, atMilliseconds: MonotonicClock.milliseconds)
        guard let suppressed else { return }
        var metadata: Logger.Metadata = [
            LogKeys.reason: "\(VisibleText.escaped(pause, limit: 300))"
        ]
        if let hint = sender.withLock({ $0?.hint }) { metadata[LogKeys.hint] = "\(hint)" }
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
