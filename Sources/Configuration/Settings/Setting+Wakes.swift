import BrokerAPI

extension Setting {
    static let wakeSettings: [Setting] = [
        .single(
            "wakes.rules", \.limits.wakeRules, .wakeRules,
            "Messages that wake phones: `alert`, `background`, `liveactivity`, `voip`, `pushtotalk` or `none`, a topic filter, and for an alert `title=`, `subtitle=`, `body=` (keys of texts in the app; `{FIELD}` in one stands for a field of the payload), `args=` (fields of the payload for these texts, with + between them), `sound=`, `badge`, `thread`, `category=`, `level=`, `channel=`, `mutable`, `quiet=`, `uncapped`, `priority=`, `expires=` and `fields=`, as in wakes.md. The first rule whose filter fits decides."
        ),
        .single(
            "wakes.merge", \.limits.wakeMergeMilliseconds,
            .milliseconds(.seconds(1)...(.seconds(3_600))),
            "At most one notification of a phone in this time; what comes meanwhile is told by the next."
        ),
        .single(
            "wakes.reconnect_window", \.limits.wakeReconnectMilliseconds,
            .milliseconds(.zero...(.seconds(600))),
            "A phone whose connection failed may come back by itself for so long before it is woken."
        ),
        .single(
            "wakes.unanswered", \.limits.wakeUnansweredMilliseconds,
            .milliseconds(.seconds(5)...(.seconds(600))),
            "A connected phone that does not acknowledge a message for so long is woken."),
        .single(
            "wakes.clear_badge", \.limits.wakeClearsBadge, .boolean,
            "Takes the number that a rule with `badge` has put on the app's icon away, by a notification of its own, once nothing waits for the client any more."
        ),
        .single(
            "wakes.quiet_hours", \.limits.wakeQuietHours, ValueFormat.quietHours.orOff(),
            "Alerts are held in these hours of each day, by the clock of the user's time zone, and told together at their end. A rule with `quiet=off` is not held."
        ),
        .single(
            "wakes.time_zone", \.limits.wakeTimeZone, .timeZone,
            "The time zone of phones that name none, of those in /usr/share/zoneinfo."),
        .single(
            "wakes.cap", \.limits.wakeCap, ValueFormat.wakeCap.orOff(),
            "The most alerts of a device in a time, which begins with its first alert; what comes beyond is told together when the time is over. A rule with `uncapped` is told all the same."
        ),
        .single(
            "wakes.apns.key_file", \.wakes.apns.keyFile,
            ValueFormat.path("a .p8 key file").optional(),
            "The key of Apple's developer account, which others may not read. Left out with certificate, nothing is sent to Apple."
        ),
        .single(
            "wakes.apns.key_id", \.wakes.apns.keyID,
            ValueFormat.appleIdentifier("the key").optional(), "Its identifier."),
        .single(
            "wakes.apns.team_id", \.wakes.apns.teamID,
            ValueFormat.appleIdentifier("the team").optional(),
            "The identifier of the developer account's team."),
        .single(
            "wakes.apns.certificate", \.wakes.apns.certificate,
            ValueFormat.path("a PEM or .p12 file").optional(),
            "Instead of a key: a certificate of the app, as PEM with certificate_key, or as .p12."),
        .single(
            "wakes.apns.certificate_key", \.wakes.apns.certificateKey,
            ValueFormat.path("a PEM file").optional(),
            "The private key of a PEM certificate, which others may not read."),
        .single(
            "wakes.apns.certificate_password_file", \.wakes.apns.certificatePasswordFile,
            ValueFormat.path("a file with a password").optional(),
            "The password of a .p12 file."),
        .single(
            "wakes.apns.apps", \.wakes.apns.apps, .appleApps,
            "Apps with a key or certificate of their own, of another team for example: the app's identifier, then `key_file=`, `key_id=` and `team_id=`, or `certificate=` with `certificate_key=` or `password_file=`, and `environment=` for one of `production` and `sandbox` alone. The paths have neither blanks nor commas."
        ),
        .single(
            "wakes.apns.production", \.wakes.apns.production, .hostAndPort,
            "Apple's service for apps of the App Store and TestFlight."),
        .single(
            "wakes.apns.sandbox", \.wakes.apns.sandbox, .hostAndPort,
            "Apple's service for apps that Xcode installs."),
        .single(
            "wakes.apns.ca_file", \.wakes.apns.caFile, ValueFormat.path("a PEM file").orUnset(),
            "Authorities that may have issued the services' certificates. Left out, those that the system trusts."
        ),
        .single(
            "wakes.apns.connections", \.wakes.apns.connections, .number(1...32),
            "The most connections to each of the two services."),
        .single(
            "wakes.fcm.service_account", \.wakes.fcm.account,
            ValueFormat.path("a service account's JSON file").optional(),
            "The service account by which notifications go to Android apps through Firebase Cloud Messaging, as Google's console offers it; others may not read the file. Left out, nothing is sent to Google."
        ),
        .single(
            "wakes.fcm.apps", \.wakes.fcm.apps, .googleApps,
            "Apps of other Firebase projects: the app's package name and `service_account=`. The paths have neither blanks nor commas."
        ),
        .single(
            "wakes.fcm.endpoint", \.wakes.fcm.endpoint, .hostAndPort,
            "Google's service. Access tokens come from the `token_uri` of the service account."),
        .single(
            "wakes.fcm.ca_file", \.wakes.fcm.caFile, ValueFormat.path("a PEM file").orUnset(),
            "As wakes.apns.ca_file, for Google's services."),
        .single(
            "wakes.fcm.connections", \.wakes.fcm.connections, .number(1...32),
            "The most connections to Google's service with each service account."),
        .single(
            "wakes.webhook.url", \.wakes.webhook.url, ValueFormat.webURL.optional(),
            "Where wakes of devices of the kind `webhook` are posted. Left out, nowhere."),
        .single(
            "wakes.webhook.secret_file", \.wakes.webhook.secretFile,
            ValueFormat.path("a file with a secret").optional(),
            "As webhook.secret_file, for the wakes."),
        .single(
            "wakes.webhook.ca_file", \.wakes.webhook.caFile,
            ValueFormat.path("a PEM file").orUnset(),
            "As webhook.ca_file, for the wakes."),
        .single(
            "wakes.webhook.timeout", \.wakes.webhook.timeout,
            .duration(.milliseconds(100)...(.seconds(60))),
            "Time for the answer to a wake; later it has failed and is sent again."),
        .single(
            "wakes.webhook.max_pause", \.wakes.webhook.maxPause,
            .duration(.seconds(1)...(.seconds(3_600))),
            "The longest pause when the receiver takes no wakes."),
        .single(
            "wakes.webhook.allow_plain", \.wakes.webhook.allowPlain, .boolean,
            "As webhook.allow_plain, for the wakes."),
    ]
}

extension ValueFormat where Value == UInt64 {
    /// A time with its unit, kept in milliseconds.
    static func milliseconds(_ range: ClosedRange<Duration>) -> Self {
        let format = ValueFormat<Duration>.duration(range)
        return Self(
            expectation: format.expectation,
            read: { (text: String) throws(RefusedValue) -> UInt64 in
                UInt64(Quantity.milliseconds(try format.read(text)))
            },
            write: { format.write(.milliseconds(Int64($0))) })
    }
}

extension ValueFormat where Value == String {
    /// An identifier of Apple's developer site.
    static func appleIdentifier(_ noun: String) -> Self {
        Self(
            expectation: "the identifier of \(noun): 10 letters and digits",
            read: { (text: String) throws(RefusedValue) -> String in
                let isPlain = text.utf8.allSatisfy {
                    (0x30...0x39).contains($0) || (0x41...0x5A).contains($0)
                        || (0x61...0x7A).contains($0)
                }
                guard text.utf8.count == 10, isPlain else {
                    throw RefusedValue(
                        complaint: "\(quoted(text)) is not 10 letters and digits",
                        cure: "Copy the identifier of \(noun) from Apple's developer site.")
                }
                return text
            },
            write: { $0 })
    }
}

extension ValueFormat where Value == HermesConfiguration.HostAndPort {
    static var hostAndPort: Self {
        let expectation = "a host name and a port, such as api.push.apple.com:443"
        return Self(
            expectation: expectation,
            read: { (text: String) throws(RefusedValue) -> HermesConfiguration.HostAndPort in
                let parts = text.split(separator: ":", omittingEmptySubsequences: false)
                let isHost =
                    parts.count == 2 && (1...253).contains(parts[0].utf8.count)
                    && parts[0].utf8.allSatisfy {
                        (0x30...0x39).contains($0) || (0x41...0x5A).contains($0)
                            || (0x61...0x7A).contains($0) || $0 == 0x2D || $0 == 0x2E
                    }
                guard isHost, let port = UInt16(parts[1]), port > 0 else {
                    throw RefusedValue(
                        complaint: "\(quoted(text)) is not a host name and a port",
                        cure: "Give \(expectation).")
                }
                return HermesConfiguration.HostAndPort(host: String(parts[0]), port: port)
            },
            write: { "\($0.host):\($0.port)" })
    }
}
