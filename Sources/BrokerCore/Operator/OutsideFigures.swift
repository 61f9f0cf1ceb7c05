import BrokerAPI

/// Figures that the shard cannot know; its owner sets them.
package struct OutsideFigures: Sendable {
    /// The version of Hermes.
    package var version = ""
    /// "none", "interval" or "sync".
    package var durability = ""
    /// Bytes over all connections; set at the start of every turn.
    package var bytesReceived: UInt64 = 0
    package var bytesSent: UInt64 = 0
    /// Password checks that have not begun; set before ``Shard/figures`` is read.
    package var authenticationsWaiting = 0
    /// Resident memory of the process; set at the start and with every sample.
    package var residentBytes = 0
    package var peakResidentBytes = 0

    package init() {}

    package mutating func setMemory(_ process: ProcessFigures) {
        residentBytes = process.residentBytes
        peakResidentBytes = process.peakResidentBytes
    }
}
