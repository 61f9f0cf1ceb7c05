/// The memory of the process, and the broker's reaction to shortage.
public struct MemoryFigures: Codable, Sendable, Equatable {
    /// Private resident memory.
    public var usedBytes: Int
    /// The limit, above which the broker closes connections; `nil` without one.
    public var limitBytes: Int?
    /// "none", "newcomers", "publishers" or "readers": the degree of shortage.
    public var pressure: String
    /// Buffers of incomplete packets, of all connections together.
    public var unfinishedBytes: Int
    /// True while nothing can be freed, so that no sessions, subscriptions and retained messages are
    /// added.
    public var keepsNothingNew: Bool

    enum CodingKeys: String, CodingKey {
        case usedBytes = "used_bytes"
        case limitBytes = "limit_bytes"
        case pressure
        case unfinishedBytes = "unfinished_bytes"
        case keepsNothingNew = "keeps_nothing_new"
    }

    public init(
        usedBytes: Int = 0, limitBytes: Int? = nil, pressure: String = "none",
        unfinishedBytes: Int = 0, keepsNothingNew: Bool = false
    ) {
        self.usedBytes = usedBytes
        self.limitBytes = limitBytes
        self.pressure = pressure
        self.unfinishedBytes = unfinishedBytes
        self.keepsNothingNew = keepsNothingNew
    }
}
