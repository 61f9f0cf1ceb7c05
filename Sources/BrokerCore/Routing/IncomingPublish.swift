import MQTTCodec
import Structures

/// A client's PUBLISH of any version, with its topic alias replaced by the topic. The bytes are those of
/// the connection's input, or of its aliases.
package struct IncomingPublish: BitwiseCopyable {
    package let delivery: Delivery
    package let retain: Bool
    package let topic: UnsafeRawBufferPointer
    package let payload: UnsafeRawBufferPointer
    /// The place of the whole packet in ``bytes``.
    private let packet: ByteRange
    /// Bytes of the whole packet.
    @inline(__always)
    package var packetBytes: Int { Int(packet.count) }
    /// True if the packet is one of MQTT 5.0.
    package let is5: Bool
    /// True if it has properties, of which the topic alias is one.
    private let hasProperties: Bool
    /// UNIX time in milliseconds at which the message expires; 0 for one that never does.
    package var expiresAtMs: Int64 = 0
    /// Properties that are passed on; `nil` for none. They lie in ``bytes``.
    package var forwarded: ForwardedProperties?
    /// The buffer that the packet was decoded from.
    package let bytes: UnsafeRawBufferPointer

    /// A PUBLISH of 3.1.1.
    @inline(__always)
    package init(_ publish: Publish, _ packet: ByteRange, _ bytes: UnsafeRawBufferPointer) {
        delivery = publish.delivery
        retain = publish.retain
        topic = bytes[publish.topic.range]
        payload = bytes[publish.payload]
        self.packet = packet
        is5 = false
        hasProperties = false
        self.bytes = bytes
    }

    /// A PUBLISH of 5.0 to `topic`, which its name or its alias says.
    package init(
        _ publish: Publish5, topic: UnsafeRawBufferPointer, _ packet: ByteRange,
        _ bytes: UnsafeRawBufferPointer, wallClockMs: Int64
    ) {
        delivery = publish.delivery
        retain = publish.retain
        self.topic = topic
        payload = bytes[publish.payload]
        self.packet = packet
        is5 = true
        hasProperties = !publish.properties.isEmpty
        self.bytes = bytes
        guard hasProperties else { return }
        let forwarded = ForwardedProperties(publish.properties, in: bytes.bytes)
        if !forwarded.isEmpty { self.forwarded = forwarded }
        if let seconds = publish.properties.messageExpiryInterval(in: bytes.bytes) {
            expiresAtMs = wallClockMs + Int64(seconds) * 1_000
        }
    }

    /// The packet of QoS 0 as receivers of the publisher's version are sent it; `nil` if each has to get
    /// another one, because of properties or of a length that is not encoded in the shortest form. In 5.0
    /// all lengths are [MQTT-1.5.5-1].
    @inline(__always)
    package var raw: RawPublish? {
        guard let base = bytes.baseAddress,
            is5
                ? !hasProperties
                : PublishEncoder.size(
                    topicCount: topic.count, payloadCount: payload.count, qos: .atMostOnce)
                    == packetBytes
        else { return nil }
        return RawPublish(packet: base + packet.start, size: packetBytes, is5: is5)
    }
}

/// A PUBLISH of QoS 0 without RETAIN and without properties, encoded once for all receivers of its
/// publisher's version. It is small, so that a loop over receivers keeps it in registers.
package struct RawPublish: BitwiseCopyable {
    package let packet: UnsafeRawPointer
    /// Bytes of the packet.
    package let size: Int
    package let is5: Bool

    private var topicStart: Int {
        var offset = 1
        while packet.load(fromByteOffset: offset, as: UInt8.self) & 0x80 != 0 { offset += 1 }
        return offset + 1 + 2
    }

    package var topic: UnsafeRawBufferPointer {
        let start = topicStart
        let count =
            Int(packet.load(fromByteOffset: start - 2, as: UInt8.self)) << 8
            | Int(packet.load(fromByteOffset: start - 1, as: UInt8.self))
        return UnsafeRawBufferPointer(start: packet + start, count: count)
    }

    package var payload: UnsafeRawBufferPointer {
        // In 5.0 the length of no properties stands between.
        let start = topicStart + topic.count + (is5 ? 1 : 0)
        return UnsafeRawBufferPointer(start: packet + start, count: size - start)
    }
}
