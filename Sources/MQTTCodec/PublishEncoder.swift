/// Encodes PUBLISH directly into the memory that it is sent from. Other packets are rare or have
/// four bytes, and use ``PacketEncoder``.
public enum PublishEncoder {
    /// Size of the whole packet in bytes.
    public static func size(topicCount: Int, payloadCount: Int, qos: QoS) -> Int {
        let remaining = remainingLength(
            topicCount: topicCount, payloadCount: payloadCount, qos: qos)
        return 1 + RemainingLength.encodedSize(of: remaining) + remaining
    }

    /// Bytes before the payload. They are written for each receiver; the payload behind them may be
    /// shared.
    public static func headerSize(topicCount: Int, payloadCount: Int, qos: QoS) -> Int {
        size(topicCount: topicCount, payloadCount: payloadCount, qos: qos) - payloadCount
    }

    /// Writes the bytes before the payload, ``headerSize(topicCount:payloadCount:qos:)`` of them.
    ///
    /// `packetIdentifier` is written for QoS 1 and 2 and ignored for QoS 0.
    public static func writeHeader(
        to destination: UnsafeMutableRawPointer, topic: UnsafeRawBufferPointer, payloadCount: Int,
        qos: QoS, retain: Bool, isDuplicate: Bool, packetIdentifier: UInt16
    ) {
        destination.storeBytes(
            of: firstByte(qos: qos, retain: retain, isDuplicate: isDuplicate), as: UInt8.self)
        var remaining = remainingLength(
            topicCount: topic.count, payloadCount: payloadCount, qos: qos)
        var offset = 1
        while remaining >= 128 {
            destination.storeBytes(
                of: UInt8(truncatingIfNeeded: remaining) | 0x80, toByteOffset: offset,
                as: UInt8.self)
            remaining >>= 7
            offset += 1
        }
        destination.storeBytes(
            of: UInt8(truncatingIfNeeded: remaining), toByteOffset: offset, as: UInt8.self)
        offset += 1
        storeInteger(UInt16(truncatingIfNeeded: topic.count), to: destination + offset)
        offset += 2
        if let base = topic.baseAddress {
            (destination + offset).copyMemory(from: base, byteCount: topic.count)
        }
        offset += topic.count
        if qos != .atMostOnce { storeInteger(packetIdentifier, to: destination + offset) }
    }

    public static func firstByte(qos: QoS, retain: Bool, isDuplicate: Bool) -> UInt8 {
        0x30 | (isDuplicate ? 0x08 : 0) | qos.rawValue << 1 | (retain ? 0x01 : 0)
    }

    public static func storeInteger(_ value: UInt16, to destination: UnsafeMutableRawPointer) {
        destination.storeBytes(of: value.bigEndian, as: UInt16.self)
    }

    static func remainingLength(topicCount: Int, payloadCount: Int, qos: QoS) -> Int {
        2 + topicCount + (qos == .atMostOnce ? 0 : 2) + payloadCount
    }
}
