/// A configuration key with the value in force and where that comes from.
public struct ConfiguredSetting: Codable, Sendable, Equatable {
    /// As an operator writes it, such as `listeners[0].port`.
    public var key: String
    /// As it would stand in the file; empty when it is not set.
    public var value: String
    /// `default`, `FILE:LINE`, the name of a variable, a flag, or `run time`.
    public var from: String
    /// True for a key that a reload, or `PATCH /v1/config`, changes at once.
    public var reloadable: Bool
    /// The value that the next start brings; `nil` when it is the one in force.
    public var atNextStart: String?

    enum CodingKeys: String, CodingKey {
        case key, value, from, reloadable
        case atNextStart = "at_next_start"
    }

    public init(
        key: String, value: String, from: String, reloadable: Bool, atNextStart: String? = nil
    ) {
        self.key = key
        self.value = value
        self.from = from
        self.reloadable = reloadable
        self.atNextStart = atNextStart
    }
}

/// The configuration in force, in the order of the documentation.
public struct ConfiguredSettings: Codable, Sendable, Equatable {
    public var settings: [ConfiguredSetting]

    public init(settings: [ConfiguredSetting]) {
        self.settings = settings
    }
}
