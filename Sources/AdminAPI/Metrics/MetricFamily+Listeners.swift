import BrokerAPI

/// Connections by the listener that took them; there are 64 listeners at most.
extension MetricFamily {
    static let listeners: [MetricFamily] = [
        byListener(
            "hermes_listener_connections", .gauge, "Clients that are connected, by listener."
        ) { $0.connected },
        byListener(
            "hermes_listener_connections_opened_total", .counter,
            "Network connections taken, by listener."
        ) { $0.opened },
        byListener(
            "hermes_listener_connections_admitted_total", .counter,
            "CONNECTs answered with code 0, by listener."
        ) { $0.admitted },
        byListener(
            "hermes_listener_connections_refused_total", .counter,
            "CONNECTs answered with another code, by listener."
        ) { $0.refused },
        byListener(
            "hermes_listener_connections_closed_total", .counter,
            "Network connections that ended, by listener."
        ) { $0.closed },
    ]

    private static func byListener(
        _ name: String, _ kind: Kind, _ help: String,
        _ value: @escaping @Sendable (BrokerFigures.Listener) -> UInt64
    ) -> Self {
        Self(name: name, kind: kind, help: help) { figures in
            figures.listeners.enumerated().map { number, listener in
                Sample(
                    labels: [("listener", "\(number)"), ("address", listener.address)],
                    value: .integer(value(listener)))
            }
        }
    }
}
