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
    }

    package var answer: Answer
    /// Where the next filter begins, counted from the packet's first byte.
    private var offset: Int
    /// The last commit of the slices so far; 0 without one.
    package var ticket: UInt64 = 0

    /// `filters` are those of the whole packet.
    package init(_ answer: Answer, _ filters: ByteRange, _ frame: PacketDecoder.Frame) {
        self.answer = answer
        offset = filters.start - frame.packet.start
    }

    /// The filters that are left, in a buffer where the packet may have another place than before.
    package func filters(of frame: PacketDecoder.Frame) -> ByteRange {
        let start = frame.packet.start + offset
        return ByteRange(offset: start, count: frame.packet.end - start)
    }

    /// Notes the filters that a slice has left.
    package mutating func leave(_ filters: ByteRange, of frame: PacketDecoder.Frame) {
        offset = filters.start - frame.packet.start
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
        if case .suback(let suback, _, _)? = take(connection)?.answer { suback.release(in: pool) }
    }
}
