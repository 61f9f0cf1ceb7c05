import OperatorConfiguration
import Webhook

extension WebhookSettings {
    /// A webhook's part of a checked configuration; `nil` when nothing is to be sent.
    package init?(_ webhook: HermesConfiguration.Webhook, section: String = "webhook") {
        guard let url = webhook.url, let secretFile = webhook.secretFile else { return nil }
        self.init(section: section, url: url, secretFile: secretFile)
        caFile = webhook.caFile
        timeout = webhook.timeout
        longestPause = webhook.maxPause
    }
}
