import BrokerRuntime
import Logging
import Synchronization
import Transport

/// The stop of a broker: begun once, by a signal or by a part that has failed. The broker then sends what
/// waits for up to `limits.drain_timeout`, unless a further signal ends that.
final class BrokerStop: Sendable {
    private struct State {
        /// That of the configuration in force.
        var drainTimeout: Duration
        var hasBegun = false
    }

    private let mailbox: Mailbox<ShardMessage>
    private let notification: ServiceNotification
    private let logger: Logger
    /// What a stop may take beyond the drain.
    private let margin: Duration
    private let state: Mutex<State>

    init(
        _ mailbox: Mailbox<ShardMessage>, _ notification: ServiceNotification, logger: Logger,
        drainTimeout: Duration, margin: Duration
    ) {
        self.mailbox = mailbox
        self.notification = notification
        self.logger = logger
        self.margin = margin
        state = Mutex(State(drainTimeout: drainTimeout))
    }

    /// Nothing is taken into force any more.
    var hasBegun: Bool { state.withLock { $0.hasBegun } }

    /// What a reload has brought into force.
    func limitDrain(to timeout: Duration) {
        state.withLock { $0.drainTimeout = timeout }
    }

    /// Tells broker and service manager, the first time.
    func begin() async {
        let timeout = state.withLock { state -> Duration? in
            defer { state.hasBegun = true }
            return state.hasBegun ? nil : state.drainTimeout
        }
        guard let timeout else { return }
        notification.stopping(within: timeout + margin)
        await post()
    }

    /// SIGTERM or SIGINT: the first begins the stop, a further one ends its drain. What was acknowledged
    /// is stored all the same.
    func take(_ signal: String) async {
        guard state.withLock({ $0.hasBegun }) else {
            logger.info("Stopping", metadata: ["signal": "\(signal)"])
            await begin()
            return
        }
        logger.notice(
            "Stopping without further waiting, clients are sent no more",
            metadata: ["signal": "\(signal)"])
        await post()
    }

    private func post() async {
        // A full mailbox is worked off within a turn.
        while mailbox.post(.stop, isUrgent: true) == .full { await Task.yield() }
    }
}
