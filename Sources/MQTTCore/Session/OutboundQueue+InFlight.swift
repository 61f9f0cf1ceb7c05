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
                            retain: entry.retain, group: entry.group)))
            case .released:
                body(.pubrel(PacketIdentifier(position: position)))
            case .hole, .waiting:
                continue
            }
        }
    }

    /// Messages whose exchange has not ended. A message of QoS 2 counts until PUBCOMP.
    public var unfinished: UInt32 { waiting + inFlight }
}
