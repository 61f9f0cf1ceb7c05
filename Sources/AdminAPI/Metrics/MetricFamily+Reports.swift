import BrokerAPI

extension MetricFamily {
    /// Metrics of what clients report, and of connections that they lost.
    static let reports: [MetricFamily] = [
        .counters(
            "hermes_client_reported_total", by: "counter",
            "What the counters in clients' reports have grown by.",
            { figures in
                ReportedCounts.all.map {
                    BrokerFigures.Count($0.name, figures.reportedGrowth[keyPath: $0.path])
                }
            }),
        .times(
            "hermes_lost_connection_silence_seconds",
            "From a client's last packet to the end of a connection without DISCONNECT, by cause and by the network that the client's report named."
        ) { figures in
            figures.lostConnections.map {
                Histogram(
                    labels: [("cause", $0.cause.name), ("network", $0.network)], $0.silence)
            }
        },
    ]
}
