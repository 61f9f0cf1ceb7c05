/// Answer of `POST /v1/config/reload`: what reading the configuration and its files again has changed.
public struct ConfigurationReload: Codable, Sendable, Equatable {
    /// Keys with other values, and those whose files have changed.
    public var changed: [String]
    /// Keys that take effect at the next start.
    public var atNextStart: [String]

    enum CodingKeys: String, CodingKey {
        case changed
        case atNextStart = "at_next_start"
    }

    public init(changed: [String], atNextStart: [String]) {
        self.changed = changed
        self.atNextStart = atNextStart
    }
}

/// The last time that the running broker was asked to read its configuration again.
public struct LastReload: Codable, Sendable, Equatable {
    public var atMs: Int64
    /// What kept it from being used; empty when all is in force.
    public var problems: [String]

    enum CodingKeys: String, CodingKey {
        case atMs = "at_ms"
        case problems
    }

    public init(atMs: Int64, problems: [String]) {
        self.atMs = atMs
        self.problems = problems
    }
}
