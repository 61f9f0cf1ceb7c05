/// Figures of the sender of notifications to Apple.
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

    public var connections = 0
    /// Answers since the start by Apple's word, `Success` among them.
    public var answers: [String: UInt64] = [:]
    /// Notifications that were sent again because no answer came.
    public var repeated: UInt64 = 0
    public var goAways: UInt64 = 0
    /// Connections that could not be opened.
    public var connectionsFailed: UInt64 = 0
    /// `nil` while notifications are sent.
    public var pause: Pause?

    enum CodingKeys: String, CodingKey {
        case connections, answers, repeated
        case goAways = "go_aways"
        case connectionsFailed = "connections_failed"
        case pause
    }

    public init() {}
}
