/// Rules over the keys of the sections `webhook` and `wakes.webhook`.
extension ConfigurationDraft {
    /// Requires URL and secret when any key of a section is set. Plain HTTP to another machine
    /// would expose what is sent, so it needs `allow_plain`.
    mutating func checkWebhooks() {
        check(configuration.webhook, section: "webhook", sends: "the events")
        check(configuration.wakes.webhook, section: "wakes.webhook", sends: "the wakes")
    }

    private mutating func check(
        _ webhook: HermesConfiguration.Webhook, section: String, sends what: String
    ) {
        guard givenKeys.contains(where: { $0 == section || $0.hasPrefix("\(section).") }) else {
            return
        }
        let (url, secret) = ("\(section).url", "\(section).secret_file")
        if areUsable(url), webhook.url == nil {
            problems.add(
                "the section has no URL, and nothing would be sent",
                cure: "Give the URL of the receiver, or delete \(section).",
                key: url, at: origin(of: section, url))
        }
        if areUsable(secret), webhook.secretFile == nil {
            problems.add(
                "the section has no secret, and a receiver could not tell the broker from others",
                cure: "Give the path of a file (openssl rand -hex 32), or delete \(section).",
                key: secret, at: origin(of: section, secret))
        }
        if areUsable(url, "\(section).allow_plain"), webhook.isPlainBeyondLoopback,
            !webhook.allowPlain
        {
            problems.add(
                "\(what) would be sent to another machine without TLS",
                cure:
                    "Give a URL of https, or set \(section).allow_plain: true where the way is safe.",
                key: url, at: origin(of: section, url))
        }
    }

    /// The origin of the key, or else of any other key in its section.
    private func origin(of section: String, _ key: String) -> ConfigurationOrigin? {
        let keys = Setting.all.map { $0.key(at: 0) }.filter { $0.hasPrefix("\(section).") }
        return ([key, section] + keys).lazy.compactMap { self.origin($0) }.first
    }
}
