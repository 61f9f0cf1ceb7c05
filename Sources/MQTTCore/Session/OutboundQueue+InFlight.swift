import MQTTCodec

/// What was sent and is not acknowledged.
extension OutboundQueue {
    /// Calls `body` for each packet to send again to a client that has reconnected, oldest first
    /// [MQTT-4.4.0-1] [MQTT-4.6.0-1].
    public func forEachInFlight(_ body: (Resend) -> Void) {
        for offset in 0..<UInt64(sentSpan) {
            let position = head + offset
            let entry = entry(at: position)
            switch entry.state {
            case .sent:
                guard let message = entry.message else { continue }
                body(
                    .publish(
                        Item(
                            message: message, position: position, qos: entry.qos,
                            retain: entry.retain)))
            case .released:
                body(.pubrel(PacketIdentifier(position: position)))
            case .hole, .waiting:
                continue
            }
        }
    }

    /// Messages that the receiver does not have for sure: all but those of QoS 2 whose PUBREC came.
    /// Counted in the time of those in flight in memory.
    public var unreceived: UInt32 {
        var count = waiting + inFlight
        forEachInFlight { if case .pubrel = $0 { count -= 1 } }
        return count
    }
}
