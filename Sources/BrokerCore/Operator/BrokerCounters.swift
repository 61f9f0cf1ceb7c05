import BrokerAPI
import MQTTCodec

/// Counters of the whole shard since its start, and a few gauges.
///
/// The packet path adds once per packet and once per payload. The count of QoS 0 is the total less
/// the others; packets other than PUBLISH are counted separately.
package struct BrokerCounters: Sendable {
    package var connectionsOpened: UInt64 = 0
    package var connectionsAdmitted: UInt64 = 0
    package var connectionsRefused: UInt64 = 0
    /// The largest number of clients connected at one time.
    package var connectionsPeak = 0
    /// Take-overs that were delayed, see ``TakeOverDamper``.
    package var takeOversDelayed: UInt64 = 0
    package var closed = Counts<CloseReason.Kind>()
    package var protocolViolations: UInt64 = 0
    package var sessionsExpired: UInt64 = 0

    package var packetsReceived: UInt64 = 0
    /// Sent packets other than PUBLISH.
    package var otherPacketsSent: UInt64 = 0
    package var publishesReceived: UInt64 = 0
    package var publishesReceivedAtLeastOnce: UInt64 = 0
    package var publishesReceivedExactlyOnce: UInt64 = 0
    package var publishesSent: UInt64 = 0
    package var publishesSentAtLeastOnce: UInt64 = 0
    package var publishesSentExactlyOnce: UInt64 = 0
    /// Bytes of payloads.
    package var publishBytesReceived: UInt64 = 0
    package var publishBytesSent: UInt64 = 0

    package var dropped = DropCounts<UInt64>()
    package var limits = Counts<Limit>()
    package var accessRefusals = Counts<AccessRefusal>()
    /// A gauge: publishers that are not read at the moment.
    package var publishersPaused = 0

    package init() {}

    /// Counts an accepted CONNECT; `connected` is the new number of connected clients.
    mutating func admitted(connected: Int) {
        connectionsAdmitted += 1
        connectionsPeak = max(connectionsPeak, connected)
    }

    /// Counts an ended connection; `wasOpen` means that its CONNECT had been accepted.
    mutating func closed(_ reason: CloseReason, wasOpen: Bool) {
        closed.add(reason.kind)
        if case .protocolViolation = reason { protocolViolations += 1 }
        if let limit = reason.limit(wasOpen: wasOpen) { limits.add(limit) }
    }

    mutating func publishReceived(_ qos: QoS, payloadBytes: Int) {
        publishesReceived += 1
        publishBytesReceived += UInt64(payloadBytes)
        switch qos {
        case .atMostOnce: break
        case .atLeastOnce: publishesReceivedAtLeastOnce += 1
        case .exactlyOnce: publishesReceivedExactlyOnce += 1
        }
    }

    mutating func publishSent(_ qos: QoS, payloadBytes: Int) {
        publishesSent += 1
        publishBytesSent += UInt64(payloadBytes)
        switch qos {
        case .atMostOnce: break
        case .atLeastOnce: publishesSentAtLeastOnce += 1
        case .exactlyOnce: publishesSentExactlyOnce += 1
        }
    }

    var packetsSent: UInt64 { publishesSent + otherPacketsSent }

    var publishesReceivedByQoS: BrokerFigures.ByQoS {
        BrokerFigures.ByQoS(
            atMostOnce: publishesReceived - publishesReceivedAtLeastOnce
                - publishesReceivedExactlyOnce,
            atLeastOnce: publishesReceivedAtLeastOnce, exactlyOnce: publishesReceivedExactlyOnce)
    }

    var publishesSentByQoS: BrokerFigures.ByQoS {
        BrokerFigures.ByQoS(
            atMostOnce: publishesSent - publishesSentAtLeastOnce - publishesSentExactlyOnce,
            atLeastOnce: publishesSentAtLeastOnce, exactlyOnce: publishesSentExactlyOnce)
    }
}
