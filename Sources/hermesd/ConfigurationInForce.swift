import AdminAPI
import BrokerAPI
import CLinux
import PlainText
import Synchronization

/// The configuration of the running broker: what is in force, reloads, and changes at run time.
final class ConfigurationInForce: ConfigurationControl {
    private struct State: Sendable {
        var reload: Reload
        var last: LastReload?
    }

    private let state: Mutex<State>

    init(_ reload: Reload) { state = Mutex(State(reload: reload)) }

    /// Reads the configuration and its files again, at SIGHUP and over HTTP. Values that were set at
    /// run time stay.
    @discardableResult
    func reload() -> ReloadOutcome {
        state.withLock { state in
            let outcome = state.reload.run()
            let problems: [String]
            switch outcome {
            case .done: problems = []
            case .refused(let reasons): problems = reasons
            }
            state.last = LastReload(atMs: hermes_wall_ms(), problems: problems)
            return outcome
        }
    }

    var lastReload: LastReload? { state.withLock { $0.last } }

    var settings: [ConfiguredSetting] { state.withLock { $0.reload.settings } }

    func change(_ values: [ForeignText: String?]) -> [String] {
        state.withLock { $0.reload.change(values) }
    }
}
