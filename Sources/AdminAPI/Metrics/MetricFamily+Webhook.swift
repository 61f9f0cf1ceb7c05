import BrokerAPI

extension MetricFamily {
    /// Metrics of the webhook; without one they have no series.
    static let webhook: [MetricFamily] = [
        .counters(
            "hermes_webhook_events_total", by: "result",
            "Events posted to the webhook, by what came of it; one counts once for each request.",
            { figures in
                let events = figures.admin.webhook?.events ?? [:]
                return events.keys.sorted().map { BrokerFigures.Count($0, events[$0] ?? 0) }
            }),
        MetricFamily(
            name: "hermes_webhook_last_success_timestamp_seconds", kind: .gauge,
            help: "When the receiver of the webhook last took events, in UNIX time; 0 for never."
        ) { figures in
            guard let webhook = figures.admin.webhook else { return [] }
            let time = Double(webhook.lastSuccessAtMs ?? 0) / 1_000
            return [Sample(labels: [], value: .real(time))]
        },
    ]
}
