import BrokerAPI
import BrokerCore
import Structures

/// The figures of a client's report (`hermes.v1.ClientReport`, Protos/hermes/v1/client_report.proto).
struct ReportedFigures: BitwiseCopyable {
    var counts = ReportedCounts()
    /// UNIX time in milliseconds on the client's clock.
    var sinceMs: Int64 = 0
    /// 0 if the report does not tell.
    var heartbeatSeconds: UInt32 = 0
}

/// Reads a client's report. Decision 27 says why the shard reads it itself.
enum ReportReader {
    /// Topics of reports: this, and the client identifier.
    static let topicPrefix: StaticString = "hermes/reports/"
    /// Bytes of a report. A client sends at most 8 KiB of channel names.
    static let mostBytes = 64 * 1_024
    /// A counter beyond this counts as this, so that sums over all clients cannot overflow.
    private static let mostCount: UInt64 = 1 << 40

    /// The figures, and the bytes of the network's name; `nil` when the report is malformed.
    static func read(
        _ bytes: UnsafeRawBufferPointer
    ) -> (figures: ReportedFigures, network: UnsafeRawBufferPointer)? {
        var figures = ReportedFigures()
        var network = UnsafeRawBufferPointer(start: nil, count: 0)
        var fields = ProtobufFields(bytes)
        while let (field, value) = fields.next() {
            switch (field, value) {
            case (1, .number(let number)): figures.counts.received = count(number)
            case (2, .number(let number)): figures.counts.duplicates = count(number)
            case (3, .bytes(let entry)):
                guard let lost = losses(of: entry) else { return nil }
                figures.counts.losses = count(figures.counts.losses + lost)
            case (4, .number(let number)): figures.counts.connects = count(number)
            case (5, .number(let number)): figures.heartbeatSeconds = UInt32(clamping: number)
            case (6, .number(let number)): figures.sinceMs = Int64(truncatingIfNeeded: number)
            case (7, .bytes(let name)): network = name
            case (8, .number(let number)): figures.counts.lostConnections = count(number)
            case (9, .number(let number)): figures.counts.lostSessions = count(number)
            case (10, .number(let number)): figures.counts.droppedAtMostOnce = count(number)
            case (11, .number(let number)): figures.counts.published = count(number)
            // A field of a later version of the schema.
            default: break
            }
        }
        return fields.isMalformed ? nil : (figures, network)
    }

    /// The value of an entry of the map `losses`; its key, the channel, is skipped.
    private static func losses(of entry: UnsafeRawBufferPointer) -> UInt64? {
        var lost: UInt64 = 0
        var fields = ProtobufFields(entry)
        while let (field, value) = fields.next() {
            if field == 2, case .number(let number) = value { lost = count(number) }
        }
        return fields.isMalformed ? nil : lost
    }

    private static func count(_ number: UInt64) -> UInt64 { min(number, mostCount) }
}
