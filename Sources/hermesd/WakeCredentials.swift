import PushServices
import BrokerAPI
import ConfiguredFiles
import Logging
import OperatorConfiguration
import Synchronization
import SystemFiles
import Wakes

/// The files by which notifications are sent to a push service, and the sender once it runs.
final class WakeCredentials: Sendable {
    private struct State {
        var credentials: PushCredentials
        var files: WatchedFiles<[FileStamp?]>
        var wakes: ServiceWakes?
    }

    /// Time between two looks at the files; each costs microseconds.
    private static let interval = Duration.seconds(5)

    private let service: PushService
    private let logger: Logger
    private let state: Mutex<State>

    /// The senders of a checked configuration, whose files are read.
    static func all(
        _ configuration: HermesConfiguration, logger: Logger
    ) throws(UnusablePushFile) -> [WakeCredentials] {
        var list: [WakeCredentials] = []
        for service in PushService.all(configuration) {
            list.append(try WakeCredentials(service, logger: logger))
        }
        return list
    }

    private init(_ service: PushService, logger: Logger) throws(UnusablePushFile) {
        self.service = service
        self.logger = logger
        let read = try service.load()
        state = Mutex(State(credentials: read, files: WatchedFiles(inUse: read.stamps)))
    }

    /// The devices that it wakes.
    var kind: Device.Kind { service.kind }

    /// Starts the sender.
    func start(_ feed: some WakeFeed) throws {
        let credentials = state.withLock { $0.credentials }
        let wakes = try ServiceWakes(service, credentials, feed: feed, logger: logger)
        state.withLock { $0.wakes = wakes }
    }

    var figures: PushFigures { state.withLock { $0.wakes }?.figures ?? PushFigures() }

    /// Ends the sender.
    func stop() { state.withLock { $0.wakes }?.stop() }

    /// Its part in a reload.
    var part: Reload.Part {
        Reload.Part(name: "file of \(service.section)") {
            let read = try self.service.load()
            let isChanged = self.state.withLock { $0.files.isChanged(by: read.stamps) }
            return Reload.Prepared(changed: isChanged ? self.service.section : nil) {
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
        let stamps = service.stamps
        guard state.withLock({ $0.files.isDue(stamps, at: .now) }) else { return }
        do throws(UnusablePushFile) {
            use(try service.load())
            logger.notice("Files of \(service.section) read again")
        } catch {
            guard state.withLock({ $0.files.refuse(stamps, "\(error)", at: .now) }) else { return }
            logger.error(
                "Unusable file of \(service.section), the earlier one stays", problems: error)
        }
    }

    private func use(_ read: PushCredentials) {
        let wakes = state.withLock { state in
            state.credentials = read
            state.files.use(read.stamps)
            return state.wakes
        }
        wakes?.use(read)
    }
}
