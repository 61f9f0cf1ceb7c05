import BrokerRuntime
import Logging
import Synchronization

/// The shutdown of a broker, begun once by a signal or by a failed part. Unsent output then has
/// `limits.drain_timeout` to leave; a second signal ends this wait.
final class BrokerStop: Sendable {
    private struct State {
        /// `limits.drain_timeout` of the running configuration.
        var drainTimeout: Duration
        var hasBegun = false
    }

    private let broker: BrokerThread
    private let notification: ServiceNotification
    private let logger: Logger
    /// Time that a shutdown may take beyond the drain.
    private let margin: Duration
    private let state: Mutex<State>

    init(
        _ broker: BrokerThread, _ notification: ServiceNotification, logger: Logger,
        drainTimeout: Duration, margin: Duration
    ) {
        self.broker = broker
        self.notification = notification
        self.logger = logger
        self.margin = margin
        state = Mutex(State(drainTimeout: drainTimeout))
    }

    /// True once the shutdown has begun; reloads do nothing from then on.
    var hasBegun: Bool { state.withLock { $0.hasBegun } }

    /// Takes the drain timeout of a reload.
    func limitDrain(to timeout: Duration) {
        state.withLock { $0.drainTimeout = timeout }
    }

    /// Begins the shutdown and tells the service manager; later calls do nothing.
    func begin() async {
        let timeout = state.withLock { state -> Duration? in
            defer { state.hasBegun = true }
            return state.hasBegun ? nil : state.drainTimeout
        }
        guard let timeout else { return }
        notification.stopping(within: timeout + margin)
        await post()
    }

    /// Handles SIGTERM and SIGINT: the first begins the shutdown, the next ends its drain.
    /// Acknowledged messages are stored in both cases.
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
        // The next turns empty a full mailbox.
        while !broker.tell(.stop) { await Task.yield() }
    }
}
