import BrokerAPI

extension MetricFamily {
    /// Metrics of devices and of the notifications that wake them.
    static let wakes: [MetricFamily] =
        [
            .gauge("hermes_devices", "Devices that clients have registered.") { $0.devices },
            .gauge("hermes_device_bytes", "These devices, and the wakes that they may be owed.") {
                $0.deviceBytes
            },
            .counters(
                "hermes_device_registrations_refused_total", by: "reason",
                "Registrations of devices that were not taken.", { $0.deviceRefusals }),
            .gauge("hermes_wakes_owed", "Devices that are owed a wake, or whose client is watched.")
            {
                $0.wakesOwed
            },
            .counters(
                "hermes_wake_messages_total", by: "outcome",
                "Messages that asked for a wake, by what came of that.", { $0.wakeMessages }),
            .counters(
                "hermes_wakes_total", by: "outcome",
                "Wakes by their end, and attempts that are repeated later.", { $0.wakes }),
        ] + pushService("apns", "Apple's push service", \.apns)
        + pushService("fcm", "Firebase Cloud Messaging", \.fcm) + wakeWebhook

    private static let wakeWebhook: [MetricFamily] = [
        .counters(
            "hermes_wake_webhook_wakes_total", by: "result",
            "Wakes posted to wakes.webhook, by what came of it; one counts once for each request.",
            { counts($0.admin.wakes.webhook?.events) }),
        lastSuccess(
            "hermes_wake_webhook_last_success_timestamp_seconds",
            "When wakes.webhook last took wakes, in UNIX time; 0 for never."
        ) { $0.admin.wakes.webhook },
    ]

    /// Metrics of a sender, which are absent without its section of the configuration.
    private static func pushService(
        _ section: String, _ name: String,
        _ sender: KeyPath<WakeSenders, PushFigures?> & Sendable
    ) -> [MetricFamily] {
        func one(
            _ suffix: String, _ kind: Kind, _ help: String,
            _ value: @escaping @Sendable (PushFigures) -> UInt64
        ) -> MetricFamily {
            MetricFamily(name: "hermes_\(section)_\(suffix)", kind: kind, help: help) { figures in
                figures.admin.wakes[keyPath: sender]
                    .map { [Sample(labels: [], value: .integer(value($0)))] } ?? []
            }
        }
        return [
            one("connections", .gauge, "Open connections to \(name).") { UInt64($0.connections) },
            one(
                "connections_failed_total", .counter,
                "Connections to \(name) that could not be opened."
            ) { $0.connectionsFailed },
            .counters(
                "hermes_\(section)_answers_total", by: "reason",
                "Answers of \(name), by its word.",
                { counts($0.admin.wakes[keyPath: sender]?.answers) }),
            one(
                "repeated_total", .counter,
                "Notifications that were sent again, since no answer came."
            ) { $0.repeated },
            one(
                "goaways_total", .counter,
                "Connections that \(name) has said goodbye on."
            ) { $0.goAways },
            // Without the section too, so that a rule about it is never about nothing.
            .gauge(
                "hermes_\(section)_paused",
                "Services and apps to which nothing is sent through \(name); status and log say why."
            ) { $0.admin.wakes[keyPath: sender]?.paused ?? 0 },
        ]
    }
}
