import BrokerAPI
import MQTTCodec
import Structures

/// Counters of the whole shard since its start, and a few gauges.
///
/// The packet path adds once per packet and once per payload. The count of QoS 0 is the total less
/// the others; packets other than PUBLISH are counted separately.
public struct BrokerCounters: Sendable {
    public var connectionsOpened: UInt64 = 0
    public var connectionsAdmitted: UInt64 = 0
    public var connectionsRefused: UInt64 = 0
    /// The largest number of clients connected at one time.
    public var connectionsPeak = 0
    /// Take-overs that were delayed, see ``TakeOverDamper``.
    public var takeOversDelayed: UInt64 = 0
    public var closed = Counts<CloseReason.Kind>()
    public var protocolViolations: UInt64 = 0
    public var sessionsExpired: UInt64 = 0

    public var packetsReceived: UInt64 = 0
    /// Sent packets other than PUBLISH.
    public var otherPacketsSent: UInt64 = 0
    public var publishesReceived: UInt64 = 0
    public var publishesReceivedAtLeastOnce: UInt64 = 0
    public var publishesReceivedExactlyOnce: UInt64 = 0
    public var publishesSent: UInt64 = 0
    public var publishesSentAtLeastOnce: UInt64 = 0
    public var publishesSentExactlyOnce: UInt64 = 0
    /// Bytes of payloads.
    public var publishBytesReceived: UInt64 = 0
    public var publishBytesSent: UInt64 = 0

    public var deliveriesAtLeastOnce = TimeHistogram()
    public var deliveriesExactlyOnce = TimeHistogram()
    /// The same, from the acknowledgement to the sender.
    public var acknowledgedDeliveriesAtLeastOnce = TimeHistogram()
    public var acknowledgedDeliveriesExactlyOnce = TimeHistogram()

    public var dropped = DropCounts<UInt64>()
    /// Messages of QoS 1 and 2 that persistent sessions held unacknowledged when they ended, other
    /// than what other members of shared subscriptions got.
    public var lostWithSessions: UInt64 = 0
    public var limits = Counts<Limit>()
    public var accessRefusals = Counts<AccessRefusal>()
    /// Connections and CONNECTs that bans refused.
    public var bansMet = Counts<Ban.Kind>()
    /// A gauge: publishers that are not read at the moment.
    public var publishersPaused = 0

    /// By listener.
    public var listeners: [BrokerFigures.Listener] = []

    package init(listenerCount: Int) {
        listeners = Array(repeating: BrokerFigures.Listener(), count: listenerCount)
    }

    /// Counts a connection that was taken.
    package mutating func opened(listener: UInt8) {
        connectionsOpened += 1
        listeners[Int(listener)].opened += 1
    }

    /// Counts an accepted CONNECT; `connected` is the new number of connected clients.
    package mutating func admitted(connected: Int, listener: UInt8) {
        connectionsAdmitted += 1
        listeners[Int(listener)].admitted += 1
        connectionsPeak = max(connectionsPeak, connected)
    }

    /// Counts a CONNECT that was answered with another code than 0.
    package mutating func refused(listener: UInt8) {
        connectionsRefused += 1
        listeners[Int(listener)].refused += 1
    }

    /// Counts an ended connection; `wasOpen` means that its CONNECT had been accepted.
    package mutating func closed(_ reason: CloseReason, wasOpen: Bool, listener: UInt8) {
        closed.add(reason.kind)
        listeners[Int(listener)].closed += 1
        if wasOpen { listeners[Int(listener)].admittedClosed += 1 }
        if case .protocolViolation = reason { protocolViolations += 1 }
        if let limit = reason.limit(wasOpen: wasOpen) { limits.add(limit) }
    }

    package mutating func publishReceived(_ qos: QoS, payloadBytes: Int) {
        publishesReceived += 1
        publishBytesReceived += UInt64(payloadBytes)
        switch qos {
        case .atMostOnce: break
        case .atLeastOnce: publishesReceivedAtLeastOnce += 1
        case .exactlyOnce: publishesReceivedExactlyOnce += 1
        }
    }

    package mutating func publishSent(_ qos: QoS, payloadBytes: Int) {
        publishesSent += 1
        publishBytesSent += UInt64(payloadBytes)
        switch qos {
        case .atMostOnce: break
        case .atLeastOnce: publishesSentAtLeastOnce += 1
        case .exactlyOnce: publishesSentExactlyOnce += 1
        }
    }

    /// Counts a receiver's last acknowledgement, unless the message's arrival is unknown. The sender
    /// was acknowledged at `acknowledgedMs`.
    package mutating func delivered(
        _ qos: QoS, arrivedMs: UInt32, acknowledgedMs: UInt32, at now: MonotonicTime
    ) {
        guard arrivedMs != 0 else { return }
        // The time is that of the turns, in whole milliseconds: the middle of one is as true.
        let microseconds = UInt64(now.arrivalStamp &- arrivedMs) * 1_000 + 500
        let sinceAcknowledged = UInt64(now.arrivalStamp &- acknowledgedMs) * 1_000 + 500
        if qos == .atLeastOnce {
            deliveriesAtLeastOnce.add(microseconds: microseconds)
            acknowledgedDeliveriesAtLeastOnce.add(microseconds: sinceAcknowledged)
        } else {
            deliveriesExactlyOnce.add(microseconds: microseconds)
            acknowledgedDeliveriesExactlyOnce.add(microseconds: sinceAcknowledged)
        }
    }

    package var packetsSent: UInt64 { publishesSent + otherPacketsSent }

    package var publishesReceivedByQoS: BrokerFigures.ByQoS {
        BrokerFigures.ByQoS(
            atMostOnce: publishesReceived - publishesReceivedAtLeastOnce
                - publishesReceivedExactlyOnce,
            atLeastOnce: publishesReceivedAtLeastOnce, exactlyOnce: publishesReceivedExactlyOnce)
    }

    package var publishesSentByQoS: BrokerFigures.ByQoS {
        BrokerFigures.ByQoS(
            atMostOnce: publishesSent - publishesSentAtLeastOnce - publishesSentExactlyOnce,
            atLeastOnce: publishesSentAtLeastOnce, exactlyOnce: publishesSentExactlyOnce)
    }
}

extension MonotonicTime {
    /// For `Message.arrivedMs`: wraps after 49 days, and is never 0.
    package var arrivalStamp: UInt32 { max(1, UInt32(truncatingIfNeeded: milliseconds)) }
}
