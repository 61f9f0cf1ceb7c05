import BrokerAPI

/// Figures that the shard cannot know; its owner sets them.
public struct OutsideFigures: Sendable {
    /// The version of Hermes.
    public var version = ""
    /// "none", "interval" or "sync".
    public var durability = ""
    /// Bytes over all connections; set at the start of every turn.
    public var bytesReceived: UInt64 = 0
    public var bytesSent: UInt64 = 0
    /// Password checks that have not begun; set before ``Shard/figures`` is read.
    public var authenticationsWaiting = 0
    /// Resident memory of the process; set at the start and with every sample.
    public var residentBytes = 0
    public var peakResidentBytes = 0

    public init() {}

    public mutating func setMemory(_ process: ProcessFigures) {
        residentBytes = process.residentBytes
        peakResidentBytes = process.peakResidentBytes
    }
}
