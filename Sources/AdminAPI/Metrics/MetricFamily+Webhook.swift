import BrokerAPI

extension MetricFamily {
    /// Metrics of the webhook; without one they have no series.
    static let webhook: [MetricFamily] = [
        .counters(
            "hermes_webhook_events_total", by: "result",
            "Events posted to the webhook, by what came of it; one counts once for each request.",
            { counts($0.admin.webhook?.events) }),
        lastSuccess(
            "hermes_webhook_last_success_timestamp_seconds",
            "When the receiver of the webhook last took events, in UNIX time; 0 for never."
        ) { $0.admin.webhook },
    ]

    /// Counters by their labels, in the labels' order; none without a sender.
    static func counts(_ counts: [String: UInt64]?) -> [BrokerFigures.Count] {
        (counts ?? [:]).sorted { $0.key < $1.key }.map { BrokerFigures.Count($0.key, $0.value) }
    }

    /// When a receiver last took something; no series without one.
    static func lastSuccess(
        _ name: String, _ help: String,
        of figures: @escaping @Sendable (BrokerFigures) -> WebhookFigures?
    ) -> MetricFamily {
        MetricFamily(name: name, kind: .gauge, help: help) {
            guard let webhook = figures($0) else { return [] }
            return [
                Sample(labels: [], value: .real(Double(webhook.lastSuccessAtMs ?? 0) / 1_000))
            ]
        }
    }
}
