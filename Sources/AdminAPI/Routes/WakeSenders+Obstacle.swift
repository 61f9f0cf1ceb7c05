import BrokerAPI
import PlainText

extension WakeSenders {
    /// Why no notification reaches a device now, and what to do; `nil` while they are sent. An app's
    /// name is that of its devices, and the environment as ``PushFigures/Trouble`` names it.
    func obstacle(for kind: Device.Kind, bundle: String, environment: String) -> String? {
        switch kind {
        case .apns:
            guard let apns else { return "wakes.apns is not configured" }
            return Self.obstacle(apns, "Apple", bundle, environment)
        case .fcm:
            guard let fcm else { return "wakes.fcm is not configured" }
            return Self.obstacle(fcm, "Google", bundle, environment)
        case .webhook:
            guard let webhook else { return "wakes.webhook is not configured" }
            return webhook.failure.map { "the receiver of wakes.webhook fails: \($0)" }
        }
    }

    private static func obstacle(
        _ figures: PushFigures, _ name: String, _ bundle: String, _ environment: String
    ) -> String? {
        let trouble = figures.troubles.first {
            $0.isPaused && $0.environment.hasBytes(of: environment)
                && ($0.bundle?.hasBytes(of: bundle) ?? true)
        }
        return trouble.map { "nothing is sent to \(name): \($0.reason); \($0.hint)" }
    }
}
