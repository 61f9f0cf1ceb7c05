import HermesClientCore
import SwiftProtobuf

/// Encodes what the client counted (`hermes.v1.ClientReport`).
package enum ReportEncoder {
    /// Bytes of channel names in one report; those with the most losses come first.
    package static let mostChannelBytes = 8 << 10

    /// - Parameters:
    ///   - counters: the client's counters.
    ///   - losses: the sequences that were told as lost, by channel.
    ///   - heartbeatSeconds: the silence between two PINGREQs.
    ///   - network: the label that the app gave the network, if any.
    /// - Returns: The report's bytes; empty if it cannot be encoded, which no counters cause.
    package static func encode(
        _ counters: ClientCounters, losses: [(channel: [UInt8], count: UInt64)],
        heartbeatSeconds: Int, network: [UInt8]?
    ) -> [UInt8] {
        var report = Hermes_V1_ClientReport()
        report.received = counters.received
        report.duplicates = counters.duplicates
        report.connects = counters.connects
        report.heartbeatSeconds = UInt32(clamping: heartbeatSeconds)
        report.sinceMs = counters.sinceUnixMilliseconds
        report.network = network.map { String(decoding: $0, as: UTF8.self) } ?? ""
        report.lostConnections = counters.lostConnections
        report.lostSessions = counters.lostSessions
        report.droppedAtMostOnce = counters.droppedAtMostOnce
        report.published = counters.published
        var bytes = 0
        for (channel, count) in losses.sorted(by: { $0.count > $1.count }) {
            bytes += channel.count
            if bytes > mostChannelBytes { break }
            report.losses[String(decoding: channel, as: UTF8.self)] = count
        }
        return (try? report.serializedBytes()) ?? []
    }
}
