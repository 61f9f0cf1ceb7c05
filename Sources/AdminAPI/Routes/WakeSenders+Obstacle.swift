import BrokerAPI

extension WakeSenders {
    /// Why no notification reaches devices of a kind now, and what to do; `nil` while they are sent.
    func obstacle(for kind: Device.Kind) -> String? {
        switch kind {
        case .apns:
            guard let apns else { return "push.apns is not configured" }
            return apns.pause.map { "nothing is sent to Apple: \($0.reason); \($0.hint)" }
        case .webhook:
            guard let webhook else { return "push.webhook is not configured" }
            return webhook.failure.map { "the receiver of push.webhook fails: \($0)" }
        }
    }
}
