import BrokerAPI

extension Receipts {
    var figures: [FeatureFigure] {
        [
            .gauge(
                "hermes_receipts",
                "Messages with receipts, and their receivers, which each count.", count),
            .counter(
                "hermes_receipts_dropped_total",
                "Receipts and receivers dropped within 24 hours, because there were too many.",
                droppedEarly),
            .gauge(
                "hermes_receipt_events",
                "Events of receipts that the webhook has not delivered.", events.count),
            .counter(
                "hermes_receipt_events_dropped_total",
                "Events of receipts that were dropped before the webhook delivered them.",
                events.dropped),
        ]
    }
}
