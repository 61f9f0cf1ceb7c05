import ConfiguredFiles
import Logging
import OperatorConfiguration
import Webhook

extension WebhookSender {
    /// Reads the files that a checked configuration names; `nil` when nothing is to be sent.
    convenience init?(
        _ webhook: HermesConfiguration.Webhook, logger: Logger
    ) throws(WebhookFiles.Unusable) {
        guard let settings = WebhookSettings(webhook) else { return nil }
        try self.init(settings, logger: logger)
    }

    /// The webhook's part in a reload.
    var part: Reload.Part {
        Reload.Part(name: "webhook file") {
            let read = try self.read()
            return Reload.Prepared(changed: self.isChanged(by: read) ? "webhook" : nil) {
                self.use(read)
                return true
            }
        }
    }
}
