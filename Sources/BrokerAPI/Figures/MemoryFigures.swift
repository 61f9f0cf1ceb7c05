/// How the broker does with its memory.
package struct MemoryFigures: Codable, Sendable, Equatable {
    /// Resident memory of the process that it shares with nobody.
    package var usedBytes: Int
    /// Above it connections are given up; `nil` without a limit.
    package var limitBytes: Int?
    /// "none", "newcomers", "publishers" or "readers": what is given up at present.
    package var pressure: String
    /// Buffers of unfinished packets, of all connections together.
    package var unfinishedBytes: Int

    enum CodingKeys: String, CodingKey {
        case usedBytes = "used_bytes"
        case limitBytes = "limit_bytes"
        case pressure
        case unfinishedBytes = "unfinished_bytes"
    }

    package init(
        usedBytes: Int = 0, limitBytes: Int? = nil, pressure: String = "none",
        unfinishedBytes: Int = 0
    ) {
        self.usedBytes = usedBytes
        self.limitBytes = limitBytes
        self.pressure = pressure
        self.unfinishedBytes = unfinishedBytes
    }
}
