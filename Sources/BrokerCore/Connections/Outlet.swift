import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// The unsent bytes of one connection.
package struct Outlet: BitwiseCopyable {
    /// The list of connections to be sent in which this one stands.
    package enum Listing: UInt8, BitwiseCopyable {
        case none
        /// Only with messages to very many receivers.
        case bulk
        case prompt
    }

    package private(set) var output = OutputQueue()
    /// Re-delivered bytes in the output, which do not show a slow reader. At most 2^32 - 1.
    private var resentBytes: UInt32 = 0
    package private(set) var listing = Listing.none

    package var count: Int { output.count }
    package var isEmpty: Bool { output.isEmpty }

    /// A four-byte packet, as ``PacketEncoder/fourBytes(_:_:)`` makes it.
    package mutating func append(word: UInt32, pool: BytePool) {
        output.append(4, pool: pool).storeBytes(of: word.littleEndian, as: UInt32.self)
    }

    /// PINGRESP.
    package mutating func appendPingresp(pool: BytePool) {
        output.append(2, pool: pool).storeBytes(of: UInt16(0x00D0).littleEndian, as: UInt16.self)
    }

    @inline(__always)
    package mutating func append(packet: UnsafeRawPointer, count: Int, pool: BytePool) {
        output.append(count, pool: pool).copyMemory(from: packet, byteCount: count)
    }

    /// A PUBLISH packet; `identifier` is 0 at QoS 0.
    package mutating func append(
        _ message: Message, qos: QoS, retain: Bool, isDuplicate: Bool = false,
        identifier: UInt16 = 0, pool: BytePool
    ) {
        message.append(
            to: &output, qos: qos, retain: retain, isDuplicate: isDuplicate,
            packetIdentifier: identifier, pool: pool)
    }

    /// Calls `body` with the output, for sending or appending.
    @inline(__always)
    package mutating func withOutput<Result>(_ body: (inout OutputQueue) -> Result) -> Result {
        body(&output)
    }

    /// Notes that all output so far is re-delivered messages.
    package mutating func noteResent() { resentBytes = UInt32(clamping: output.count) }

    /// Notes that the socket has taken all output.
    package mutating func noteDrained() { resentBytes = 0 }

    /// True when the client sends without reading, so that its own answers would fill memory.
    package func isOverLimit(_ context: borrowing ShardContext) -> Bool {
        output.count > 2 * context.limits.outputBytes + context.limits.maxPacketBytes
            + Int(resentBytes)
    }

    /// Lists the connection; false when it stands in that list already, or in one that is sent
    /// earlier.
    package mutating func list(_ listing: Listing) -> Bool {
        guard listing.rawValue > self.listing.rawValue else { return false }
        self.listing = listing
        return true
    }

    package mutating func unlist() { listing = .none }

    package mutating func removeAll(in pool: BytePool) { output.removeAll(in: pool) }

    /// The unsent bytes alone, for the time after the close.
    package var afterClose: Outlet {
        var outlet = Outlet()
        outlet.output = output
        return outlet
    }
}
