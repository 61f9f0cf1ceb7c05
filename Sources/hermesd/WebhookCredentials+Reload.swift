import Webhook

extension WebhookCredentials {
    /// A webhook's part in a reload; `section` is its section of the configuration.
    func part(_ section: String) -> Reload.Part {
        Reload.Part(name: "file of \(section)") {
            let read = try self.read()
            return Reload.Prepared(changed: self.isChanged(by: read) ? section : nil) {
                self.use(read)
                return true
            }
        }
    }
}
