import BrokerAPI

extension MetricFamily {
    /// Metrics of devices and of the notifications that wake them.
    static let wakes: [MetricFamily] = [
        .gauge("hermes_devices", "Devices that clients have registered.") { $0.devices },
        .gauge("hermes_device_bytes", "These devices, and the wakes that they may be owed.") {
            $0.deviceBytes
        },
        .counters(
            "hermes_device_registrations_refused_total", by: "reason",
            "Registrations of devices that were not taken.", { $0.deviceRefusals }),
        .gauge("hermes_wakes_owed", "Devices that are owed a wake, or whose client is watched.") {
            $0.wakesOwed
        },
        .counters(
            "hermes_wake_messages_total", by: "outcome",
            "Messages that asked for a wake, by whether it was a new one.", { $0.wakeMessages }),
        .counters(
            "hermes_wakes_total", by: "outcome",
            "Wakes by their end, and attempts that are repeated later.", { $0.wakes }),
        MetricFamily(
            name: "hermes_apns_connections", kind: .gauge,
            help: "Open connections to Apple's push service."
        ) { apns($0) { .integer(UInt64($0.connections)) } },
        MetricFamily(
            name: "hermes_apns_connections_failed_total", kind: .counter,
            help: "Connections to Apple's push service that could not be opened."
        ) { apns($0) { .integer($0.connectionsFailed) } },
        .counters(
            "hermes_apns_answers_total", by: "reason",
            "Answers of Apple's push service, by its word.",
            { counts($0.admin.wakes.apns?.answers) }),
        MetricFamily(
            name: "hermes_apns_repeated_total", kind: .counter,
            help: "Notifications that were sent again, since no answer came."
        ) { apns($0) { .integer($0.repeated) } },
        MetricFamily(
            name: "hermes_apns_goaways_total", kind: .counter,
            help: "Connections that Apple's push service has said goodbye on."
        ) { apns($0) { .integer($0.goAways) } },
        // Without wakes.apns too, so that a rule about it is never about nothing.
        .gauge(
            "hermes_apns_paused",
            "Services of Apple and apps to which nothing is sent; status and log say why."
        ) { $0.admin.wakes.apns?.paused ?? 0 },
        .counters(
            "hermes_wake_webhook_wakes_total", by: "result",
            "Wakes posted to wakes.webhook, by what came of it; one counts once for each request.",
            { counts($0.admin.wakes.webhook?.events) }),
        lastSuccess(
            "hermes_wake_webhook_last_success_timestamp_seconds",
            "When wakes.webhook last took wakes, in UNIX time; 0 for never."
        ) { $0.admin.wakes.webhook },
    ]

    /// One series with wakes.apns, and none without.
    private static func apns(
        _ figures: BrokerFigures, _ value: (PushFigures) -> Value
    ) -> [Sample] {
        figures.admin.wakes.apns.map { [Sample(labels: [], value: value($0))] } ?? []
    }
}
