import Structures

/// Figures of the admin plane.
public struct AdminFigures: Sendable, Equatable {
    /// Rejected requests, by reason.
    public var refused: [BrokerFigures.Count] = []
    /// Connections refused because none of their listener's could make room for them.
    public var connectionsRefused: UInt64 = 0
    /// Connections that were closed to make room for others.
    public var connectionsDisplaced: UInt64 = 0
    /// Answered requests, by route.
    public var requests: [Requests] = []
    /// The certificate of HTTPS; `nil` with plain HTTP.
    public var certificate: Certificate?
    /// `nil` without a webhook.
    public var webhook: WebhookFigures?
    /// `nil` when no service is asked about logins.
    public var loginService: LoginServiceFigures?
    public var wakes = WakeSenders()
    /// `nil` when the configuration was not read again.
    public var lastReload: LastReload?

    /// Requests to one route, or to none.
    public struct Requests: Sendable, Equatable {
        /// "other" for requests without a route.
        public var method: String
        /// The path with its placeholders; "other" for requests without a route.
        public var route: String
        /// By class of the status: `2xx`, `4xx`, `5xx`.
        public var answers: [BrokerFigures.Count]
        /// From the head of the request to its answer.
        public var times: TimeHistogram

        public init(
            method: String, route: String, answers: [BrokerFigures.Count], times: TimeHistogram
        ) {
            self.method = method
            self.route = route
            self.answers = answers
            self.times = times
        }
    }

    /// A certificate in use.
    public struct Certificate: Sendable, Equatable {
        public var file: String
        /// Days until it expires; negative once it has.
        public var daysLeft: Double
        /// When it expires, in seconds since 1970.
        public var expiresAt: Int64

        public init(file: String, daysLeft: Double, expiresAt: Int64) {
            self.file = file
            self.daysLeft = daysLeft
            self.expiresAt = expiresAt
        }
    }

    public init() {}
}
