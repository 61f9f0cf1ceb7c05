import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// The unsent bytes of one connection.
package struct Outlet: BitwiseCopyable {
    /// The lines of ``SendLine`` in which the connection stands.
    package struct Listing: OptionSet, BitwiseCopyable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The line of those that are sent first.
        package static var first: Listing { Listing(rawValue: 1) }
        /// The line of those that are sent behind them.
        package static var behind: Listing { Listing(rawValue: 2) }
    }

    /// An output of at most so many bytes is sent before larger ones.
    package static var littleBytes: Int { 8 * 1_024 }
    /// Bytes of an output that are sent before those of the next connection.
    package static var mostSentAtOnce: Int { 64 * 1_024 }
    private static var bytesPerUnitShift: Int { 13 }

    package private(set) var output = OutputQueue()
    /// Re-delivered bytes in the output, which do not show a slow reader. At most 2^32 - 1.
    private var resentBytes: UInt32 = 0
    package private(set) var listing: Listing = []
    /// The client speaks MQTT 5.0, from its CONNECT on; see ``Clients5``.
    package private(set) var speaks5 = false

    package var count: Int { output.count }
    package var isEmpty: Bool { output.isEmpty }
    /// True when so little is unsent that it is sent before others' output.
    @inline(__always)
    package var isLittle: Bool { output.count <= Self.littleBytes }
    /// What the next send takes of a turn: 1, and 1 for each 8 KiB.
    @inline(__always)
    package var sendUnits: Int {
        1 + min(output.count, Self.mostSentAtOnce) >> Self.bytesPerUnitShift
    }

    /// Notes that the client speaks MQTT 5.0.
    package mutating func speak5() { speaks5 = true }

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

    /// Notes that the connection joins a line; false when it stands there already.
    @inline(__always)
    package mutating func list(_ line: Listing) -> Bool {
        guard !listing.contains(line) else { return false }
        listing.insert(line)
        return true
    }

    /// Notes that the connection has left a line.
    @inline(__always)
    package mutating func unlist(_ line: Listing) { listing.remove(line) }

    package mutating func removeAll(in pool: BytePool) { output.removeAll(in: pool) }

    /// The unsent bytes alone, for the time after the close.
    package var afterClose: Outlet {
        var outlet = Outlet()
        outlet.output = output
        return outlet
    }
}
