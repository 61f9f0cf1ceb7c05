/// Figures of the sender of notifications to Apple.
public struct PushFigures: Codable, Sendable, Equatable {
    public var connections = 0
    /// Notifications on their way.
    public var open = 0
    /// Answers since the start by Apple's word, `Success` among them.
    public var answers: [String: UInt64] = [:]
    /// Notifications that were sent again because no answer came.
    public var repeated: UInt64 = 0
    public var goAways: UInt64 = 0
    public var connectionsOpened: UInt64 = 0
    public var connectionsFailed: UInt64 = 0
    /// Why nothing is sent now; `nil` while all is well.
    public var pause: String?
    /// UNIX time in milliseconds at which Apple took a notification last; `nil` before.
    public var lastSuccessAtMs: Int64?

    enum CodingKeys: String, CodingKey {
        case connections, open, answers, repeated
        case goAways = "go_aways"
        case connectionsOpened = "connections_opened"
        case connectionsFailed = "connections_failed"
        case pause
        case lastSuccessAtMs = "last_success_at_ms"
    }

    public init() {}
}
