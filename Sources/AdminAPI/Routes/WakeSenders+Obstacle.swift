import BrokerAPI
import PlainText

extension WakeSenders {
    /// Why no notification reaches a device now, and what to do; `nil` while they are sent. An app's
    /// name is that of its devices, and the environment as ``PushFigures/Trouble`` names it.
    func obstacle(for kind: Device.Kind, bundle: String, environment: String) -> String? {
        switch kind {
        case .apns:
            guard let apns else { return "wakes.apns is not configured" }
            let trouble = apns.troubles.first {
                $0.isPaused && $0.environment.hasBytes(of: environment)
                    && ($0.bundle?.hasBytes(of: bundle) ?? true)
            }
            return trouble.map { "nothing is sent to Apple: \($0.reason); \($0.hint)" }
        case .webhook:
            guard let webhook else { return "wakes.webhook is not configured" }
            return webhook.failure.map { "the receiver of wakes.webhook fails: \($0)" }
        }
    }
}
