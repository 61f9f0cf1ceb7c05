import MQTTCodec
import MQTTCore
import Structures

/// A SUBSCRIBE or UNSUBSCRIBE that takes more than its connection's share of a turn, between two of
/// its slices. The packet itself stays in the connection's input.
package struct FilterRequest {
    package enum Answer {
        /// SUBACK with the codes so far, the offset of the next one, and the count of refusals.
        case suback(SharedBytes, codeOffset: Int, SubscribeRefusals)
        case unsuback(PacketIdentifier)
        /// The same of MQTT 5.0, with the identifier of the subscriptions.
        case suback5(
            SharedBytes, codeOffset: Int, SubscribeRefusals, SubscriptionIdentifier?)
        /// UNSUBACK of MQTT 5.0 with the codes so far, and the offset of the next one.
        case unsuback5(SharedBytes, codeOffset: Int)
    }

    package var answer: Answer
    /// Where the next filter begins, counted from the packet's first byte.
    private var offset: Int
    /// The last commit of the slices so far; 0 without one.
    package var ticket: UInt64 = 0

    /// `filters` are those of the whole packet.
    package init(_ answer: Answer, _ filters: ByteRange, _ packet: ByteRange) {
        self.answer = answer
        offset = filters.start - packet.start
    }

    /// The filters that are left, in a buffer where the packet may have another place than before.
    package func filters(of packet: ByteRange) -> ByteRange {
        let start = packet.start + offset
        return ByteRange(offset: start, count: packet.end - start)
    }

    /// Notes the filters that a slice has left.
    package mutating func leave(_ filters: ByteRange, of packet: ByteRange) {
        offset = filters.start - packet.start
    }
}

/// The requests of all connections that have one between two slices. They go with their connection.
package struct FilterRequests {
    private var requests: [UInt32: FilterRequest] = [:]

    @inline(__always)
    package var isEmpty: Bool { requests.isEmpty }

    package func contains(_ connection: Handle) -> Bool { requests[connection.index] != nil }

    package mutating func put(_ request: FilterRequest, _ connection: Handle) {
        requests[connection.index] = request
    }

    package mutating func take(_ connection: Handle) -> FilterRequest? {
        requests.removeValue(forKey: connection.index)
    }

    /// Drops what a connection that closes has left.
    package mutating func remove(_ connection: Handle, pool: BytePool) {
        switch take(connection)?.answer {
        case .suback(let packet, _, _), .suback5(let packet, _, _, _), .unsuback5(let packet, _):
            packet.release(in: pool)
        case .unsuback, nil: return
        }
    }
}
