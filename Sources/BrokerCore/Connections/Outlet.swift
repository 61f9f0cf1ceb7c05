import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// The unsent bytes of one connection.
struct Outlet: BitwiseCopyable {
    private(set) var output = OutputQueue()
    /// The connection stands in the list of those whose output is sent in this turn.
    private(set) var isListed = false
    /// Bytes that were sent again after CONNACK and are perhaps unsent: they are no sign of a client that
    /// does not read. At most 2^32 - 1.
    private var resentBytes: UInt32 = 0

    var count: Int { output.count }
    var isEmpty: Bool { output.isEmpty }

    /// A four-byte packet, as ``PacketEncoder/fourBytes(_:_:)`` makes it.
    mutating func append(word: UInt32, pool: BytePool) {
        output.append(4, pool: pool).storeBytes(of: word.littleEndian, as: UInt32.self)
    }

    /// PINGRESP.
    mutating func appendPingresp(pool: BytePool) {
        output.append(2, pool: pool).storeBytes(of: UInt16(0x00D0).littleEndian, as: UInt16.self)
    }

    @inline(__always)
    mutating func append(packet: UnsafeRawBufferPointer, pool: BytePool) {
        output.append(packet, pool: pool)
    }

    /// A PUBLISH packet; `identifier` is 0 at QoS 0.
    mutating func append(
        _ message: Message, qos: QoS, retain: Bool, isDuplicate: Bool = false,
        identifier: UInt16 = 0, pool: BytePool
    ) {
        message.append(
            to: &output, qos: qos, retain: retain, isDuplicate: isDuplicate,
            packetIdentifier: identifier, pool: pool)
    }

    /// Runs a body over the output, for sending or for acknowledgements.
    @inline(__always)
    mutating func withOutput<Result>(_ body: (inout OutputQueue) -> Result) -> Result {
        body(&output)
    }

    /// All output so far was sent again to a client that came back.
    mutating func noteResent() { resentBytes = UInt32(clamping: output.count) }

    /// The socket has taken everything.
    mutating func noteDrained() { resentBytes = 0 }

    /// Whether the client sends and does not read: its own answers must not fill the memory.
    func isOverLimit(_ context: borrowing ShardContext) -> Bool {
        output.count > 2 * context.limits.outputBytes + context.limits.maxPacketBytes
            + Int(resentBytes)
    }

    /// The connection joins or leaves the list of those that are sent on; false when nothing changes.
    mutating func setListed(_ isListed: Bool) -> Bool {
        guard self.isListed != isListed else { return false }
        self.isListed = isListed
        return true
    }

    mutating func removeAll(in pool: BytePool) { output.removeAll(in: pool) }

    /// What is left of a closed connection: its unsent bytes.
    var afterClose: Outlet {
        var outlet = Outlet()
        outlet.output = output
        return outlet
    }
}
