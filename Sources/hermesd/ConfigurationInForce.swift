import AdminAPI
import BrokerAPI
import PlainText
import Synchronization

/// The configuration of the running broker: what is in force, reloads, and changes at run time.
final class ConfigurationInForce: ConfigurationControl {
    private let state: Mutex<Reload>

    init(_ reload: Reload) { state = Mutex(reload) }

    /// Reads the configuration and its files again, at SIGHUP. Values that were set at run time stay.
    func reload() {
        state.withLock { reload in _ = reload.run() }
    }

    var settings: [ConfiguredSetting] { state.withLock { $0.settings } }

    func change(_ values: [ForeignText: String?]) -> [String] {
        state.withLock { $0.change(values) }
    }
}
