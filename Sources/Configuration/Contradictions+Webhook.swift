/// Rules over the keys of the `webhook` section.
extension ConfigurationDraft {
    /// Requires URL and secret when any key of the section is set. Plain HTTP to another machine
    /// would expose the events, so it needs `webhook.allow_plain`.
    mutating func checkWebhook() {
        let section = "webhook"
        guard givenKeys.contains(where: { $0 == section || $0.hasPrefix("\(section).") }) else {
            return
        }
        let (url, secret) = ("webhook.url", "webhook.secret_file")
        let webhook = configuration.webhook
        if areUsable(url), webhook.url == nil {
            problems.add(
                "the section has no URL, and nothing would be sent",
                cure: "Give the URL of the receiver, or delete webhook.",
                key: url, at: originOfWebhook(url))
        }
        if areUsable(secret), webhook.secretFile == nil {
            problems.add(
                "the section has no secret, and a receiver could not tell the broker from others",
                cure: "Give the path of a file (openssl rand -hex 32), or delete webhook.",
                key: secret, at: originOfWebhook(secret))
        }
        if areUsable(url, "webhook.allow_plain"), webhook.isPlainBeyondLoopback,
            !webhook.allowPlain
        {
            problems.add(
                "the events would be sent to another machine without TLS",
                cure:
                    "Give a URL of https, or set webhook.allow_plain: true where the way is safe.",
                key: url, at: originOfWebhook(url))
        }
    }

    /// The origin of the key, or else of any other key in its section.
    private func originOfWebhook(_ key: String) -> ConfigurationOrigin? {
        let keys = Setting.webhookSettings.map { $0.key(at: 0) }
        return ([key, "webhook"] + keys).lazy.compactMap { self.origin($0) }.first
    }
}
