import APNs
import BrokerAPI
import ConfiguredFiles
import Logging
import OperatorConfiguration
import Synchronization
import SystemFiles
import Wakes

/// The files by which notifications are sent to Apple, and the sender once it runs.
final class PushCredentials: Sendable {
    private struct State {
        var credentials: APNsCredentials
        /// Those of the files when they were read last, also in vain.
        var stamps: [FileStamp?]
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
        let credentials = try APNsCredentials.load(settings)
        state = Mutex(State(credentials: credentials, stamps: credentials.stamps))
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
            let isChanged = self.state.withLock { $0.credentials.stamps != read.stamps }
            return Reload.Prepared(changed: isChanged ? "push.apns" : nil) {
                if isChanged { self.use(read) }
                return true
            }
        }
    }

    /// Looks for changed files, and takes them if they can be used; one line says so, or why not.
    func renew() {
        let stamps = settings.stamps
        let areChanged = state.withLock { state in
            defer { state.stamps = stamps }
            return state.stamps != stamps
        }
        guard areChanged else { return }
        do throws(APNsUnusable) {
            use(try APNsCredentials.load(settings))
            logger.notice("Files of push.apns read again")
        } catch {
            guard !error.isTransient else {
                // Tried again.
                return state.withLock { $0.stamps = [] }
            }
            logger.error("Unusable file of push.apns, the earlier one stays", problems: error)
        }
    }

    private func use(_ read: APNsCredentials) {
        let wakes = state.withLock { state in
            state.credentials = read
            state.stamps = read.stamps
            return state.wakes
        }
        wakes?.use(read)
    }
}
