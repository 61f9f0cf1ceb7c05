import AdminAPI
import BrokerAPI
import PlainText
import Synchronization

/// A configuration of two keys, of which one can be changed.
final class StubConfiguration: ConfigurationControl {
    private let values = Mutex(["limits.queue_messages": "1000", "data_directory": "data"])

    var settings: [ConfiguredSetting] {
        values.withLock { values in
            values.sorted { $0.key < $1.key }.map {
                ConfiguredSetting(
                    key: $0.key, value: $0.value, from: "default",
                    reloadable: $0.key == "limits.queue_messages", atNextStart: "2")
            }
        }
    }

    private let last = Mutex<LastReload?>(nil)
    /// What the next reloads find wrong.
    let mistakes = Mutex<[String]>([])

    var lastReload: LastReload? { last.withLock { $0 } }

    func reload() -> ReloadOutcome {
        let problems = mistakes.withLock { $0 }
        last.withLock { $0 = LastReload(atMs: 1_000, problems: problems) }
        return problems.isEmpty
            ? .done(ConfigurationReload(changed: ["logging.level"], atNextStart: []))
            : .refused(problems)
    }

    func change(_ changes: [ForeignText: String?]) -> [String] {
        guard changes.keys.allSatisfy({ $0 == "limits.queue_messages" }) else {
            return ["Another key takes effect at a start only."]
        }
        values.withLock { values in
            for (key, value) in changes { values[key.string] = value ?? "1000" }
        }
        return []
    }
}
