import APNs
import BrokerAPI
import ConfiguredFiles
import Logging
import OperatorConfiguration
import Synchronization
import Wakes

/// The files by which notifications are sent to Apple, and the sender once it runs.
final class PushCredentials: Sendable {
    private struct State {
        var credentials: APNsCredentials
        var wakes: APNsWakes?
    }

    private let settings: APNsSettings
    private let logger: Logger
    private let state: Mutex<State>

    /// Reads the files that a checked configuration names; `nil` when nothing is to be sent.
    init?(_ configuration: HermesConfiguration, logger: Logger) throws(APNsUnusable) {
        guard let settings = APNsSettings(configuration) else { return nil }
        self.settings = settings
        self.logger = logger
        state = Mutex(State(credentials: try APNsCredentials.load(settings)))
    }

    /// Starts the sender.
    func start(_ feed: some WakeFeed) throws -> APNsWakes {
        let credentials = state.withLock { $0.credentials }
        let wakes = try APNsWakes(settings, credentials, feed: feed, logger: logger)
        state.withLock { $0.wakes = wakes }
        return wakes
    }

    /// Its part in a reload.
    var part: Reload.Part {
        Reload.Part(name: "file of push.apns") {
            let read = try APNsCredentials.load(self.settings)
            let isChanged = self.state.withLock { read.differs(from: $0.credentials) }
            return Reload.Prepared(changed: isChanged ? "push.apns" : nil) {
                if isChanged { self.use(read) }
                return true
            }
        }
    }

    /// Looks for changed files, and takes them if they can be used; a line says so.
    func renew() {
        do throws(APNsUnusable) {
            let read = try APNsCredentials.load(settings)
            guard state.withLock({ read.differs(from: $0.credentials) }) else { return }
            use(read)
            logger.notice("Files of push.apns read again")
        } catch {
            guard !error.isTransient else { return }
            logger.error("Unusable file of push.apns, the earlier one stays", problems: error)
        }
    }

    private func use(_ read: APNsCredentials) {
        let wakes = state.withLock { state in
            state.credentials = read
            return state.wakes
        }
        wakes?.use(read)
    }
}
