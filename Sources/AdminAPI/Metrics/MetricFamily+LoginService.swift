import BrokerAPI

extension MetricFamily {
    /// Metrics of the service that is asked about logins; without one only the
    /// last has a series.
    static let loginService: [MetricFamily] = [
        .counters(
            "hermes_login_service_logins_total", by: "result",
            "Logins that the company's service was to decide, by what came of them.",
            { counts($0.admin.loginService?.logins) }),
        ofService(
            "hermes_login_service_in_flight", "Requests to the company's service on their way."
        ) { $0.inFlight },
        ofService(
            "hermes_login_service_waiting", "Logins that wait for the company's service."
        ) { $0.waiting },
        // Without a service too, so that a rule about it is never about nothing.
        .gauge(
            "hermes_login_service_failing",
            "1 while the company's service fails and is asked only now and then."
        ) { $0.admin.loginService?.isFailing == true ? 1 : 0 },
    ]

    private static func ofService(
        _ name: String, _ help: String, _ value: @escaping @Sendable (LoginServiceFigures) -> Int
    ) -> MetricFamily {
        MetricFamily(name: name, kind: .gauge, help: help) {
            guard let figures = $0.admin.loginService else { return [] }
            return [Sample(labels: [], value: .integer(UInt64(max(0, value(figures)))))]
        }
    }
}
