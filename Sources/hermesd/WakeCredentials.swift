import APNs
import BrokerAPI
import ConfiguredFiles
import Logging
import OperatorConfiguration
import Synchronization
import SystemFiles
import Wakes

/// The files by which notifications are sent to Apple, and the sender once it runs.
final class WakeCredentials: Sendable {
    private struct State {
        var credentials: APNsCredentials
        var files: WatchedFiles<[FileStamp?]>
        var wakes: APNsWakes?
    }

    /// Time between two looks at the files; each costs microseconds.
    private static let interval = Duration.seconds(5)

    private let settings: APNsSettings
    private let logger: Logger
    private let state: Mutex<State>

    /// Reads the files that a checked configuration names; `nil` when nothing is to be sent.
    init?(_ configuration: HermesConfiguration, logger: Logger) throws(APNsUnusable) {
        guard let settings = APNsSettings(configuration) else { return nil }
        self.settings = settings
        self.logger = logger
        let read = try APNsCredentials.load(settings)
        state = Mutex(State(credentials: read, files: WatchedFiles(inUse: read.stamps)))
    }

    /// Starts the sender.
    func start(_ feed: some WakeFeed) throws {
        let credentials = state.withLock { $0.credentials }
        let wakes = try APNsWakes(settings, credentials, feed: feed, logger: logger)
        state.withLock { $0.wakes = wakes }
    }

    var figures: PushFigures { state.withLock { $0.wakes }?.figures ?? PushFigures() }

    /// Ends the sender.
    func stop() { state.withLock { $0.wakes }?.stop() }

    /// Its part in a reload.
    var part: Reload.Part {
        Reload.Part(name: "file of wakes.apns") {
            let read = try APNsCredentials.load(self.settings)
            let isChanged = self.state.withLock { $0.files.isChanged(by: read.stamps) }
            return Reload.Prepared(changed: isChanged ? "wakes.apns" : nil) {
                if isChanged { self.use(read) }
                return true
            }
        }
    }

    /// Takes changed files, until the task is cancelled.
    func watch() async {
        while (try? await Task.sleep(for: Self.interval)) != nil { look() }
    }

    private func look() {
        let stamps = settings.stamps
        guard state.withLock({ $0.files.isDue(stamps, at: .now) }) else { return }
        do throws(APNsUnusable) {
            use(try APNsCredentials.load(settings))
            logger.notice("Files of wakes.apns read again")
        } catch {
            guard state.withLock({ $0.files.refuse(stamps, "\(error)", at: .now) }) else { return }
            logger.error("Unusable file of wakes.apns, the earlier one stays", problems: error)
        }
    }

    private func use(_ read: APNsCredentials) {
        let wakes = state.withLock { state in
            state.credentials = read
            state.files.use(read.stamps)
            return state.wakes
        }
        wakes?.use(read)
    }
}
