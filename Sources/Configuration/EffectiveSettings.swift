import BrokerAPI
import PlainText

/// What a configuration says, with the layer that each value comes from.
package struct EffectiveSettings: Sendable {
    private let read: HermesConfiguration
    private let origins: [String: ConfigurationOrigin]

    init(_ draft: ConfigurationDraft) {
        read = draft.configuration
        origins = draft.origins
    }

    /// Every key of the running configuration. A key whose value waits for the next start says so.
    package func list(running: HermesConfiguration) -> [ConfiguredSetting] {
        Setting.all.flatMap { setting in
            (0..<(setting.isOfListener ? running.listeners.count : 1)).map { index in
                let key = setting.key(at: index)
                let value = setting.show(running, index)
                let next =
                    !setting.isOfListener || index < read.listeners.count
                    ? setting.show(read, index) : ""
                return ConfiguredSetting(
                    key: key, value: value, from: origins[key]?.description ?? "default",
                    reloadable: setting.isReloadable, atNextStart: next == value ? nil : next)
            }
        }
    }
}

extension EffectiveSettings {
    /// The text with the place of a setting, such as `hermes.yaml:7`, before each line that begins
    /// with the setting's key.
    package func placed(_ text: String) -> String {
        text.split(separator: "\n").map { line in
            let key = String(line.prefix { $0 != ":" })
            return origins[key].map { "\($0): \(line)" } ?? String(line)
        }.joined(separator: "\n")
    }

    /// Why a key cannot be changed while the broker runs; `nil` when it can.
    package static func refusal(ofChanging key: ForeignText) -> String? {
        guard let setting = Setting.all.first(where: { key == ForeignText($0.pattern) }) else {
            return "There is no key \"\(key.visible(limit: 100))\"."
        }
        return setting.isReloadable
            ? nil : "\(key) takes effect at a start only: change the file and start again."
    }
}
