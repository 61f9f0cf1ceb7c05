import BrokerAPI
import Hummingbird

/// Health, readiness, status and metrics of the broker.
struct StatusRoutes: Sendable {
    let broker: any BrokerControl
    let version: String
    /// "none", "interval" or "sync".
    let durability: String
    let counters: AdminCounters
    /// `nil` with plain HTTP.
    let certificates: AdminCertificates?
    /// `nil` without a webhook.
    let webhook: (@Sendable () -> WebhookFigures)?
    /// `nil` when no service is asked about logins.
    let loginService: (@Sendable () -> LoginServiceFigures)?
    let wakes: @Sendable () -> WakeSenders
    /// `nil` in tests that reload nothing.
    let control: (any ConfigurationControl)?

    /// `GET /healthz`, `/readyz`, `/v1/status`, `/metrics` and `/v1/openapi.json`.
    var routes: [Route] { [health, readiness, status, metrics, openAPI] }

    /// Shows that the admin plane answers; does not ask the data plane.
    private var health: Route {
        Route(method: .get, path: "/healthz", access: .open) { _ throws(Problem) in
            try Response.json(HealthModel(status: "ok", version: version))
        }
    }

    /// For load balancers and supervisors without a token; does not ask the data plane.
    private var readiness: Route {
        Route(method: .get, path: "/readyz", access: .open) { _ throws(Problem) in
            if let reason = broker.store?.notReadyReason {
                throw Problem(
                    .notReady, reason,
                    fix: "See to the disk; hermesctl status shows the store, and "
                        + "hermesctl store accept-loss accepts the loss of damaged data.")
            }
            if broker.isDraining {
                throw Problem(
                    .notReady, DrainStatus.notReadyReason,
                    fix: "Connect to another broker; hermesctl drain stop lets clients connect "
                        + "again.")
            }
            return try Response.json(ReadinessModel(status: "ready", durability: durability))
        }
    }

    private var status: Route {
        Route(method: .get, path: "/v1/status", access: .reading(.untouched)) { _ throws(Problem) in
            var status: BrokerStatus = try await broker.ask { .status($0) }
            status.store = broker.store
            status.webhook = webhook?()
            status.loginService = loginService?()
            let senders = wakes()
            status.apns = senders.apns
            status.fcm = senders.fcm
            status.reload = control?.lastReload
            return try Response.json(status)
        }
    }

    /// For Prometheus. Needs a token, like all information about this broker; one with the scope
    /// `read` is enough.
    private var metrics: Route {
        Route(method: .get, path: "/metrics", access: .reading(.untouched)) { _ throws(Problem) in
            var figures: BrokerFigures = try await broker.ask { .figures($0) }
            figures.process = broker.process
            if let store = broker.store { figures.store = store }
            figures.admin = counters.figures
            figures.admin.certificate = certificates?.figures
            figures.admin.webhook = webhook?()
            figures.admin.loginService = loginService?()
            figures.admin.wakes = wakes()
            figures.admin.lastReload = control?.lastReload
            return Response(
                status: .ok, headers: [.contentType: MetricsText.contentType],
                body: ResponseBody(byteBuffer: ByteBuffer(string: MetricsText.render(figures))))
        }
    }

    /// Open, because it describes the software and not this broker.
    private var openAPI: Route {
        let document = OpenAPIDocument.text(version: version)
        return Route(method: .get, path: "/v1/openapi.json", access: .open) { _ throws(Problem) in
            Response(
                status: .ok, headers: [.contentType: "application/json"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: document)))
        }
    }
}
