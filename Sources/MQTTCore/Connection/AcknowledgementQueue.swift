import MQTTCodec
import Structures

/// The acknowledgements of one connection in the order in which they must be sent, each with the
/// commit that it waits for.
///
/// PUBACK, PUBREC and PUBREL leave in the order of the packets that they answer [MQTT-4.6.0-2]
/// [MQTT-4.6.0-3] [MQTT-4.6.0-4]. So an acknowledgement whose commit has completed still waits
/// behind one whose commit has not. An empty queue holds no memory.
public struct AcknowledgementQueue: BitwiseCopyable {
    private struct Entry: BitwiseCopyable {
        /// The commit to wait for; 0 for none.
        var ticket: UInt64
        /// A four-byte packet as a little-endian word; unused when `packet` is set.
        var word: UInt32
        /// Bytes of the PUBLISH, SUBSCRIBE or UNSUBSCRIBE that this packet answers; 0 for any other
        /// packet.
        var requestBytes: UInt32
        /// A whole packet that is not four bytes long, such as SUBACK.
        var packet: SharedBytes?
    }

    private var entries: UnsafeMutablePointer<Entry>?
    private var capacity: UInt32 = 0
    private var first: UInt32 = 0
    public private(set) var count: UInt32 = 0
    /// Number of PUBLISH, SUBSCRIBE and UNSUBSCRIBE packets that wait for their acknowledgement.
    public private(set) var requests: UInt32 = 0
    /// Bytes of those packets, as they stood on the wire.
    public private(set) var requestBytes: Int = 0

    public init() {}

    public var isEmpty: Bool { count == 0 }

    /// Appends a four-byte packet, which is sent once `ticket` has been committed (at once for 0).
    public mutating func append(
        word: UInt32, ticket: UInt64, requestBytes: Int = 0, pool: BytePool
    ) {
        push(
            Entry(ticket: ticket, word: word, requestBytes: UInt32(requestBytes), packet: nil),
            pool)
    }

    /// Appends a packet of any size; the queue takes over the caller's reference.
    public mutating func append(
        packet: SharedBytes, ticket: UInt64, requestBytes: Int = 0, pool: BytePool
    ) {
        push(
            Entry(ticket: ticket, word: 0, requestBytes: UInt32(requestBytes), packet: packet),
            pool)
    }

    /// A set of acknowledgement types.
    public struct Types: OptionSet, Sendable {
        public let rawValue: UInt16

        public init(rawValue: UInt16) { self.rawValue = rawValue }

        public static let pubrec = Types(.pubrec)
        public static let pubrel = Types(.pubrel)
        public static let pubcomp = Types(.pubcomp)

        fileprivate init(_ type: PacketType) { rawValue = 1 << UInt16(type.rawValue) }
    }

    /// Moves packets to the output, up to the first whose commit has not completed. Returns the
    /// types of the four-byte packets among them.
    @discardableResult
    public mutating func release(
        to output: inout OutputQueue, pool: BytePool, isCommitted: (UInt64) -> Bool
    ) -> Types {
        var released: Types = []
        while count > 0, let entries {
            let entry = entries[Int(first)]
            guard entry.ticket == 0 || isCommitted(entry.ticket) else { return released }
            if let packet = entry.packet {
                output.append(
                    UnsafeRawBufferPointer(start: packet.bytes, count: packet.count), pool: pool)
                packet.release(in: pool)
            } else {
                output.append(4, pool: pool).storeBytes(
                    of: entry.word.littleEndian, as: UInt32.self)
                released.formUnion(Types(rawValue: 1 << UInt16(entry.word >> 4 & 0xF)))
            }
            if entry.requestBytes > 0 {
                requests -= 1
                requestBytes -= Int(entry.requestBytes)
            }
            first = (first + 1) & (capacity - 1)
            count -= 1
        }
        if count == 0 { removeAll(in: pool) }
        return released
    }

    /// Drops all packets and frees the queue's memory.
    public mutating func removeAll(in pool: BytePool) {
        if let entries {
            for offset in 0..<count {
                entries[Int((first + offset) & (capacity - 1))].packet?.release(in: pool)
            }
            pool.deallocate(
                UnsafeMutableRawPointer(entries),
                count: Int(capacity) * MemoryLayout<Entry>.stride)
        }
        self = AcknowledgementQueue()
    }

    private mutating func push(_ entry: Entry, _ pool: BytePool) {
        if count == capacity { grow(pool) }
        guard let entries else { preconditionFailure("no room for an acknowledgement") }
        (entries + Int((first + count) & (capacity - 1))).initialize(to: entry)
        count += 1
        guard entry.requestBytes > 0 else { return }
        requests += 1
        requestBytes += Int(entry.requestBytes)
    }

    private mutating func grow(_ pool: BytePool) {
        let larger = max(8, capacity * 2)
        let stride = MemoryLayout<Entry>.stride
        let moved = pool.allocate(Int(larger) * stride)
            .bindMemory(to: Entry.self, capacity: Int(larger))
        if let entries {
            for offset in 0..<count {
                (moved + Int(offset))
                    .initialize(to: entries[Int((first + offset) & (capacity - 1))])
            }
            pool.deallocate(UnsafeMutableRawPointer(entries), count: Int(capacity) * stride)
        }
        entries = moved
        capacity = larger
        first = 0
    }
}
