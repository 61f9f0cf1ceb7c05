import OperatorConfiguration
import Webhook

extension WebhookSettings {
    /// The webhook's part of a checked configuration; `nil` when nothing is to be sent.
    package init?(_ webhook: HermesConfiguration.Webhook) {
        guard let url = webhook.url, let secretFile = webhook.secretFile else { return nil }
        self.init(url: url, secretFile: secretFile)
        caFile = webhook.caFile
        timeout = webhook.timeout
        longestPause = webhook.maxPause
    }
}
