import MQTTCodec
import Structures

/// An application message that outlives its packet, encoded once for all its receivers.
///
/// A receiver's copy of QoS 1 or 2 differs only in the first byte and the packet identifier, so
/// delivery is one copy and two patches. Large payloads, and those for very many receivers, are not
/// copied at all. Layout: an internal header of 24 bytes, then a PUBLISH packet of 3.1.1 with room
/// for a packet identifier, then the publisher's properties of 5.0 with their size behind them, then
/// the publisher's identifier of the message, which no receiver gets. Receivers of 5.0 get a header
/// of their own. Each holder of a reference calls ``release(in:)`` once.
public struct Message: BitwiseCopyable {
    private struct Header: BitwiseCopyable {
        /// UNIX time in milliseconds; 0 for a message that never expires.
        var expiresAtMs: Int64
        /// Offset from the packet's first byte; the topic ends two bytes before.
        var payloadOffset: UInt32
        var topicCount: UInt16
        /// Bytes of properties that are passed on; see ``Message/propertiesCount``.
        var propertiesCount: UInt16
        /// True when receivers' outputs refer to the payload; false when each gets a copy.
        var sharesPayload: Bool
        /// The QoS of the publisher's PUBLISH.
        var qos: QoS
        /// Bit 0 is RETAIN as the publisher set it, bits 1 and 2 are ``Message/wake``.
        var options: UInt8
        var messageIDCount: UInt8
        /// See ``Message/arrivedMs``.
        var arrivedMs: UInt32
    }

    /// From this many bytes on, a reference costs less than a copy (the measured crossover is 8 to
    /// 16 KiB).
    private static var sharingThreshold: Int { 16 * 1_024 }
    /// For very many receivers smaller payloads are shared too: copies would take this much memory.
    private static var mostCopied: Int { 1_024 * 1_024 }
    /// Smaller payloads are always copied: a reference takes about as much memory.
    private static var leastShared: Int { 512 }
    private static var headerBytes: Int { 24 }
    /// The most bytes of properties that a message carries.
    public static var mostProperties: Int { Int(UInt16.max) }
    /// Bytes behind the properties that say how many they are.
    private static var sizeOfProperties: Int { 2 }

    private let shared: SharedBytes

    /// Copies topic and payload; the caller owns the first reference. `suffix` is appended to the
    /// payload: it carries a sequence number that the broker assigned. Of `messageID` at most 255
    /// bytes are kept, of `wake` two bits. A QoS 0 message is stored in the same form, and each of its receivers gets a
    /// new header. `forwarded` are properties of ``mostProperties`` bytes at most, found in
    /// `forwardedSource`.
    public init(
        topic: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer,
        suffix: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
        qos: QoS, retain: Bool, wake: UInt8 = 0, expiresAtMs: Int64 = 0, arrivedMs: UInt32 = 0,
        messageID: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
        forwarded: ForwardedProperties? = nil,
        forwardedSource: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
        pool: BytePool
    ) {
        precondition(
            forwarded?.count ?? 0 <= Self.mostProperties, "more properties than a message carries")
        let propertiesCount = forwarded?.count ?? 0
        let tail = propertiesCount == 0 ? 0 : propertiesCount + Self.sizeOfProperties
        let payloadCount = payload.count + suffix.count
        let payloadOffset = PublishEncoder.headerSize(
            topicCount: topic.count, payloadCount: payloadCount, qos: .atLeastOnce)
        let messageIDCount = UInt8(clamping: messageID.count)
        let packetCount = payloadOffset + payloadCount
        shared = SharedBytes(
            count: Self.headerBytes + packetCount + tail + Int(messageIDCount), pool: pool)
        shared.bytes.storeBytes(
            of: Header(
                expiresAtMs: expiresAtMs, payloadOffset: UInt32(payloadOffset),
                topicCount: UInt16(topic.count), propertiesCount: UInt16(propertiesCount),
                sharesPayload: payloadCount >= Self.sharingThreshold, qos: qos,
                options: (retain ? 1 : 0) | (wake & 3) << 1, messageIDCount: messageIDCount,
                arrivedMs: arrivedMs),
            as: Header.self)
        let packet = shared.bytes + Self.headerBytes
        PublishEncoder.writeHeader(
            to: packet, topic: topic, payloadCount: payloadCount, qos: .atLeastOnce,
            retain: false, isDuplicate: false, packetIdentifier: 0)
        if let base = payload.baseAddress {
            (packet + payloadOffset).copyMemory(from: base, byteCount: payload.count)
        }
        if let base = suffix.baseAddress {
            (packet + payloadOffset + payload.count)
                .copyMemory(from: base, byteCount: suffix.count)
        }
        if let forwarded, propertiesCount > 0 {
            forwarded.copy(to: packet + packetCount, from: forwardedSource)
            PublishEncoder.storeInteger(
                UInt16(propertiesCount), to: packet + packetCount + propertiesCount)
        }
        if let base = messageID.baseAddress {
            (packet + packetCount + tail).copyMemory(from: base, byteCount: Int(messageIDCount))
        }
    }

    private var header: Header { shared.bytes.load(as: Header.self) }
    private var packet: UnsafeMutableRawPointer { shared.bytes + Self.headerBytes }

    /// Bytes of the packet in the form of 3.1.1.
    public var count: Int {
        let header = header
        return shared.count - Self.headerBytes - Int(header.messageIDCount) - Self.tail(of: header)
    }

    /// Bytes of properties with their size, between packet and identifier.
    @inline(__always)
    private static func tail(of header: Header) -> Int {
        header.propertiesCount == 0 ? 0 : Int(header.propertiesCount) + sizeOfProperties
    }

    /// Bytes of topic, payload and properties, as queues and their limits count them. The store counts
    /// the same, so that a queue has as many bytes after a start as before.
    public var contentBytes: Int {
        let header = header
        return shared.count - Self.headerBytes - Int(header.messageIDCount)
            - Int(header.payloadOffset) + Int(header.topicCount)
    }
    public var qos: QoS { header.qos }
    /// RETAIN as the publisher set it.
    public var retain: Bool { header.options & 1 != 0 }
    /// What the publisher asks of notifications: 0 to 3, whose meaning is its creator's.
    public var wake: UInt8 { header.options >> 1 }

    public var topic: UnsafeRawBufferPointer {
        let header = header
        return UnsafeRawBufferPointer(
            start: packet + Int(header.payloadOffset) - 2 - Int(header.topicCount),
            count: Int(header.topicCount))
    }

    public var payload: UnsafeRawBufferPointer {
        let offset = Int(header.payloadOffset)
        return UnsafeRawBufferPointer(start: packet + offset, count: count - offset)
    }

    /// True for a message with properties that are passed on.
    public var hasProperties: Bool { header.propertiesCount > 0 }

    /// The properties of the publisher that each receiver of 5.0 gets, unchanged and in their order
    /// [MQTT-3.3.2-17] [MQTT-3.3.2-18]; the broker checked them when they came.
    public var properties: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: packet + count, count: Int(header.propertiesCount))
    }

    /// Payload, properties and their size, as a store keeps them in the place of the payload;
    /// ``split(_:)`` takes them apart. The payload itself for a message without properties.
    public var storedPayload: UnsafeRawBufferPointer {
        let header = header
        let offset = Int(header.payloadOffset)
        return UnsafeRawBufferPointer(
            start: packet + offset, count: count - offset + Self.tail(of: header))
    }

    /// The payload and the properties of a ``storedPayload`` with properties; `nil` for bytes that are
    /// none, which only damage makes.
    public static func split(
        _ stored: UnsafeRawBufferPointer
    ) -> (payload: UnsafeRawBufferPointer, properties: UnsafeRawBufferPointer)? {
        guard stored.count > sizeOfProperties else { return nil }
        let end = stored.count - sizeOfProperties
        let count = Int(stored[end]) << 8 | Int(stored[end + 1])
        guard count > 0, count <= end else { return nil }
        return (
            UnsafeRawBufferPointer(rebasing: stored[..<(end - count)]),
            UnsafeRawBufferPointer(rebasing: stored[(end - count)..<end])
        )
    }

    /// True when a payload of this size is shared by so many receivers.
    public static func sharesPayload(count: Int, receivers: Int) -> Bool {
        count >= sharingThreshold
            || (count >= leastShared && count * receivers >= mostCopied)
    }

    /// Sets whether so many receivers' outputs refer to the payload, instead of a copy each.
    public func setReceivers(_ receivers: Int) {
        guard Self.sharesPayload(count: payload.count, receivers: receivers) else { return }
        var header = header
        header.sharesPayload = true
        shared.bytes.storeBytes(of: header, as: Header.self)
    }

    /// Bytes that are copied into each receiver's output.
    public var copiedBytes: Int {
        let header = header
        return header.sharesPayload ? Int(header.payloadOffset) : count
    }

    /// True when the message has expired at `wallClock`, a UNIX time in milliseconds.
    public func isExpired(atMs wallClock: Int64) -> Bool {
        let expiry = header.expiresAtMs
        return expiry != 0 && expiry <= wallClock
    }

    /// UNIX time in milliseconds; 0 for a message that never expires.
    public var expiresAtMs: Int64 { header.expiresAtMs }

    /// The low 32 bits of the monotonic time in milliseconds at which the message came to the broker;
    /// 0 for one that came otherwise: from the store, as a will, or from the broker.
    public var arrivedMs: UInt32 { header.arrivedMs }

    /// The publisher's identifier of the message; empty for one that came over MQTT.
    public var messageID: UnsafeRawBufferPointer {
        let header = header
        let count = Int(header.messageIDCount)
        return UnsafeRawBufferPointer(
            start: shared.bytes + shared.count - count, count: count)
    }

    /// Adds a reference.
    public func retainReference() { shared.retain() }

    /// Gives one reference up; the last one frees the message.
    public func release(in pool: BytePool) { shared.release(in: pool) }

    /// Appends the message as a PUBLISH for one receiver.
    ///
    /// `isDuplicate` sets DUP when the broker sends this packet again; the publisher's own DUP does
    /// not matter [MQTT-3.3.1-3].
    public func append(
        to output: inout OutputQueue, qos: QoS, retain: Bool, isDuplicate: Bool,
        packetIdentifier: UInt16, pool: BytePool
    ) {
        guard qos != .atMostOnce else {
            appendAtMostOnce(to: &output, retain: retain, pool: pool)
            return
        }
        let header = header
        let payloadOffset = Int(header.payloadOffset)
        let isShared = header.sharesPayload
        let copied = isShared ? payloadOffset : count
        let destination = output.append(copied, pool: pool)
        destination.copyMemory(from: packet, byteCount: copied)
        destination.storeBytes(
            of: PublishEncoder.firstByte(qos: qos, retain: retain, isDuplicate: isDuplicate),
            as: UInt8.self)
        PublishEncoder.storeInteger(packetIdentifier, to: destination + payloadOffset - 2)
        if isShared { appendPayload(to: &output, pool) }
    }

    private func appendAtMostOnce(to output: inout OutputQueue, retain: Bool, pool: BytePool) {
        let topic = topic
        let payload = payload
        let headerSize = PublishEncoder.headerSize(
            topicCount: topic.count, payloadCount: payload.count, qos: .atMostOnce)
        let isShared = header.sharesPayload
        let destination = output.append(
            headerSize + (isShared ? 0 : payload.count), pool: pool)
        PublishEncoder.writeHeader(
            to: destination, topic: topic, payloadCount: payload.count, qos: .atMostOnce,
            retain: retain, isDuplicate: false, packetIdentifier: 0)
        if isShared {
            appendPayload(to: &output, pool)
        } else if let base = payload.baseAddress {
            (destination + headerSize).copyMemory(from: base, byteCount: payload.count)
        }
    }

    /// True when receivers' outputs refer to the payload.
    var sharesPayload: Bool { header.sharesPayload }

    func appendPayload(to output: inout OutputQueue, _ pool: BytePool) {
        let offset = Int(header.payloadOffset)
        output.append(
            shared, offset: Self.headerBytes + offset, count: count - offset, pool: pool)
    }
}
