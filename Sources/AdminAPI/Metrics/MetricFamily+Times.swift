import BrokerAPI

/// How long things take, and when certificates end.
extension MetricFamily {
    static let times: [MetricFamily] = [
        .times(
            "hermes_acknowledge_seconds",
            "From the arrival of a client's packet to its acknowledgement, where that waits for the store."
        ) { [Histogram(labels: [], $0.acknowledgements)] },
        .times(
            "hermes_acknowledged_delivery_seconds",
            "From the acknowledgement of a message to its receiver's last acknowledgement, by QoS of the delivery."
        ) {
            [
                Histogram(labels: [("qos", "1")], $0.acknowledgedDeliveriesAtLeastOnce),
                Histogram(labels: [("qos", "2")], $0.acknowledgedDeliveriesExactlyOnce),
            ]
        },
        .times(
            "hermes_store_commit_seconds",
            "From taking a group of writes until it was durable, whatever held it up."
        ) { [Histogram(labels: [], $0.store.commitTimes)] },
        .times("hermes_store_fdatasync_seconds", "Single calls of fdatasync.") {
            [Histogram(labels: [], $0.store.syncTimes)]
        },
        .times(
            "hermes_turn_seconds", "Turns of the broker's thread, without the wait for events."
        ) { [Histogram(labels: [], $0.turns)] },
        .real("hermes_turn_longest_seconds", .gauge, "The longest turn of the last minute.") {
            Double($0.longestTurnMicroseconds) / 1e6
        },
        MetricFamily(
            name: "hermes_tls_certificate_expiry_timestamp_seconds", kind: .gauge,
            help: "When a listener's certificate ends, in UNIX time."
        ) { figures in
            let admin = figures.admin.certificate.map {
                end(listener: "admin", $0.file, $0.expiresAt)
            }
            return ends(figures.certificates) + [admin].compactMap { $0 }
        },
        MetricFamily(
            name: "hermes_tls_revocation_list_expiry_timestamp_seconds", kind: .gauge,
            help: "When the first revocation list of a listener ends, in UNIX time."
        ) { figures in ends(figures.revocationLists) },
    ]

    private static func ends(_ files: [BrokerFigures.ExpiringFile]) -> [Sample] {
        files.map { end(listener: "\($0.listener)", $0.file, $0.expiresAt) }
    }

    private static func end(listener: String, _ file: String, _ end: Int64) -> Sample {
        Sample(
            labels: [("listener", listener), ("file", file)],
            value: .integer(UInt64(max(0, end))))
    }
}
