import MQTTCodec
import Structures

/// Acknowledgements of messages in flight.
extension OutboundQueue {
    /// The result of an acknowledgement.
    public enum Received {
        /// `arrivedMs` is ``Message/arrivedMs``; 0 also for a retained message, whose receiver asked
        /// for it later.
        case accepted(position: UInt64, arrivedMs: UInt32)
        /// A repeated acknowledgement, or a PUBREC for a message that was given up.
        case repeated
        /// No message in flight has this packet identifier.
        case unknown
        /// The message in flight with this packet identifier awaits the other packet that is named.
        case violation(awaited: PacketType)
    }

    /// Handles PUBACK: a QoS 1 message is done.
    public mutating func acknowledge(
        _ identifier: PacketIdentifier, pool: BytePool
    ) -> Received {
        guard let position = position(of: identifier) else { return .unknown }
        return finish(position, by: .puback, pool)
    }

    /// Handles PUBREC: the receiver owns a QoS 2 message, and the broker owes PUBREL until PUBCOMP
    /// comes.
    public mutating func markReceived(
        _ identifier: PacketIdentifier, pool: BytePool
    ) -> Received {
        guard let position = position(of: identifier) else { return .unknown }
        var entry = entry(at: position)
        switch entry.state {
        case .released:
            return .repeated
        case .sent where entry.qos == .exactlyOnce:
            let arrivedMs = entry.arrivedMs
            entry.message?.release(in: pool)
            entry.message = nil
            entry.state = .released
            entry.ticket = UInt64(arrivedMs)
            store(entry, at: position)
            return .accepted(position: position, arrivedMs: arrivedMs)
        case .sent:
            return .violation(awaited: .puback)
        case .waiting, .hole:
            return .unknown
        }
    }

    /// Handles PUBCOMP: a QoS 2 message is done.
    public mutating func complete(_ identifier: PacketIdentifier, pool: BytePool) -> Received {
        guard let position = position(of: identifier) else { return .unknown }
        return finish(position, by: .pubcomp, pool)
    }

    /// Handles a PUBACK or PUBREC that refuses the message: it is done.
    public mutating func refuse(
        _ identifier: PacketIdentifier, by type: PacketType, pool: BytePool
    ) -> Received {
        guard let position = position(of: identifier) else { return .unknown }
        return finish(position, by: type, pool)
    }

    /// Ends a message in flight, if it awaits this packet.
    private mutating func finish(
        _ position: UInt64, by type: PacketType, _ pool: BytePool
    ) -> Received {
        let entry = entry(at: position)
        guard let awaited = entry.awaited else { return .unknown }
        guard awaited == type else { return .violation(awaited: awaited) }
        let arrivedMs = entry.arrivedMs
        entry.message?.release(in: pool)
        store(.hole, at: position)
        loadedInFlight -= 1
        advanceHead(pool)
        return .accepted(position: position, arrivedMs: arrivedMs)
    }

    /// The position with this packet identifier among the positions that have been sent; `nil`
    /// without one.
    private func position(of identifier: PacketIdentifier) -> UInt64? {
        let offset = offset(of: identifier)
        return offset < UInt64(sentSpan) ? head + offset : nil
    }

    /// The distance from the head to the next position with this packet identifier.
    func offset(of identifier: PacketIdentifier) -> UInt64 {
        let first = UInt64(PacketIdentifier(position: head).rawValue)
        return (UInt64(identifier.rawValue) + 65_535 - first) % 65_535
    }
}

extension OutboundQueue.Entry {
    /// The acknowledgement that comes next; `nil` for a message that is not in flight.
    fileprivate var awaited: PacketType? {
        switch state {
        case .hole, .waiting: nil
        case .sent: qos == .exactlyOnce ? .pubrec : .puback
        case .released: .pubcomp
        }
    }

    /// For ``OutboundQueue/Received/accepted(position:arrivedMs:)``.
    fileprivate var arrivedMs: UInt32 {
        guard !retain else { return 0 }
        return state == .released ? UInt32(truncatingIfNeeded: ticket) : message?.arrivedMs ?? 0
    }
}
