/// Figures of the sender of notifications to a push service.
public struct PushFigures: Codable, Sendable, Equatable {
    /// Why nothing is sent.
    public struct Pause: Codable, Sendable, Equatable {
        public var reason: String
        /// What an operator can do about it.
        public var hint: String

        public init(reason: String, hint: String) {
            self.reason = reason
            self.hint = hint
        }
    }

    /// What is wrong with a push service, or with one app at it.
    public struct Trouble: Codable, Sendable, Equatable {
        /// `production`, or Apple's `sandbox`.
        public var environment: String
        /// `nil`: with all apps of the service.
        public var bundle: String?
        /// True when nothing is sent there, but for a try now and then; false for an alarm.
        public var isPaused: Bool
        public var reason: String
        /// What an operator can do about it.
        public var hint: String

        enum CodingKeys: String, CodingKey {
            case environment, bundle
            case isPaused = "paused"
            case reason, hint
        }

        public init(
            environment: String, bundle: String?, isPaused: Bool, reason: String, hint: String
        ) {
            self.environment = environment
            self.bundle = bundle
            self.isPaused = isPaused
            self.reason = reason
            self.hint = hint
        }
    }

    /// The most troubles that are listed.
    public static let mostTroubles = 16

    public var connections = 0
    /// Answers since the start by the service's word, `Success` among them.
    public var answers: [String: UInt64] = [:]
    /// Notifications that were sent again because no answer came.
    public var repeated: UInt64 = 0
    public var goAways: UInt64 = 0
    /// Connections that could not be opened.
    public var connectionsFailed: UInt64 = 0
    /// Services and apps with a trouble, at most ``mostTroubles``; the paused ones first.
    public var troubles: [Trouble] = []
    /// Services and apps to which nothing is sent, whether listed or not.
    public var paused = 0
    /// The first trouble when nothing is sent at all; `nil` while anything is.
    public var pause: Pause?

    enum CodingKeys: String, CodingKey {
        case connections, answers, repeated
        case goAways = "go_aways"
        case connectionsFailed = "connections_failed"
        case troubles, paused, pause
    }

    public init() {}
}
