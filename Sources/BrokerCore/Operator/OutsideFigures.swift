import BrokerAPI

/// What the figures need and a shard does not know: its glue sets it.
package struct OutsideFigures: Sendable {
    /// Of this software.
    package var version = ""
    /// "none", "interval" or "sync".
    package var durability = ""
    /// Over all connections; set at the start of every turn.
    package var bytesReceived: UInt64 = 0
    package var bytesSent: UInt64 = 0
    /// Password checks that have not begun; set before ``Shard/figures`` is read.
    package var authenticationsWaiting = 0
    /// Of the process; set at the start and with every sample.
    package var residentBytes = 0
    package var peakResidentBytes = 0

    package init() {}

    package mutating func setMemory(_ process: ProcessFigures) {
        residentBytes = process.residentBytes
        peakResidentBytes = process.peakResidentBytes
    }
}
