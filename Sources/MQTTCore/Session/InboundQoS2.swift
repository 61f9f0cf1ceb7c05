import MQTTCodec
import Structures

/// The packet identifiers of QoS 2 messages that a client has sent and not yet released with
/// PUBREL. They are session state [MQTT-4.3.3-2].
///
/// Two bytes each, unordered. An empty set holds no memory. The client's packet identifiers are
/// independent of those that the broker assigns [MQTT-2.3.1-4].
public struct InboundQoS2: BitwiseCopyable {
    private var identifiers: UnsafeMutablePointer<UInt16>?
    private var capacity: UInt32 = 0
    public private(set) var count: UInt32 = 0

    public init() {}

    /// Bytes that the set holds in the pool.
    public var byteCount: Int { Int(capacity) * 2 }

    public func contains(_ identifier: PacketIdentifier) -> Bool {
        index(of: identifier) != nil
    }

    /// Adds an identifier, which must not be in the set.
    public mutating func insert(_ identifier: PacketIdentifier, pool: BytePool) {
        if count == capacity {
            let larger = UInt32(BytePool.capacity(for: max(8, Int(capacity) * 4))) / 2
            let raw = pool.allocate(Int(larger) * 2)
            let moved = raw.bindMemory(to: UInt16.self, capacity: Int(larger))
            if let identifiers {
                moved.initialize(from: identifiers, count: Int(count))
                pool.deallocate(UnsafeMutableRawPointer(identifiers), count: Int(capacity) * 2)
            }
            identifiers = moved
            capacity = larger
        }
        guard let identifiers else { preconditionFailure("no room for an identifier") }
        (identifiers + Int(count)).initialize(to: identifier.rawValue)
        count += 1
    }

    /// Removes an identifier; false when it is not in the set.
    @discardableResult
    public mutating func remove(_ identifier: PacketIdentifier, pool: BytePool) -> Bool {
        guard let index = index(of: identifier), let identifiers else { return false }
        count -= 1
        identifiers[index] = identifiers[Int(count)]
        if count == 0 { removeAll(in: pool) }
        return true
    }

    public mutating func removeAll(in pool: BytePool) {
        if let identifiers {
            pool.deallocate(UnsafeMutableRawPointer(identifiers), count: Int(capacity) * 2)
        }
        (identifiers, capacity, count) = (nil, 0, 0)
    }

    private func index(of identifier: PacketIdentifier) -> Int? {
        guard let identifiers else { return nil }
        for index in 0..<Int(count) where identifiers[index] == identifier.rawValue {
            return index
        }
        return nil
    }
}
