import MQTTCodec
import Structures

/// A client's PUBLISH of any version, with its topic alias replaced by the topic. The bytes are those of
/// the connection's input, or of its aliases.
package struct IncomingPublish: BitwiseCopyable {
    package let delivery: Delivery
    package let retain: Bool
    package let topic: UnsafeRawBufferPointer
    package let payload: UnsafeRawBufferPointer
    /// The whole packet.
    package let packet: UnsafeRawBufferPointer
    /// True if receivers of the publisher's version may be sent the packet as it is, at QoS 0.
    package let isPlain: Bool
    /// True if the packet is one of MQTT 5.0.
    package let is5: Bool
    /// UNIX time in milliseconds at which the message expires; 0 for one that never does.
    package var expiresAtMs: Int64 = 0
    /// Properties that are passed on; `nil` for none. They lie in ``bytes``.
    package var forwarded: ForwardedProperties?
    /// The buffer that the packet was decoded from.
    package let bytes: UnsafeRawBufferPointer

    /// A PUBLISH of 3.1.1, which is plain if its length is encoded as the broker does it.
    @inline(__always)
    package init(_ publish: Publish, _ packet: ByteRange, _ bytes: UnsafeRawBufferPointer) {
        delivery = publish.delivery
        retain = publish.retain
        topic = bytes[publish.topic.range]
        payload = bytes[publish.payload]
        self.packet = bytes[packet]
        isPlain =
            PublishEncoder.size(
                topicCount: topic.count, payloadCount: payload.count, qos: .atMostOnce)
            == packet.count
        is5 = false
        self.bytes = bytes
    }

    /// A PUBLISH of 5.0 to `topic`, which its name or its alias says. Lengths of 5.0 are always encoded
    /// in the shortest form [MQTT-1.5.5-1].
    package init(
        _ publish: Publish5, topic: UnsafeRawBufferPointer, _ packet: ByteRange,
        _ bytes: UnsafeRawBufferPointer, wallClockMs: Int64
    ) {
        delivery = publish.delivery
        retain = publish.retain
        self.topic = topic
        payload = bytes[publish.payload]
        self.packet = bytes[packet]
        isPlain = publish.properties.isEmpty
        is5 = true
        self.bytes = bytes
        guard !isPlain else { return }
        let forwarded = ForwardedProperties(publish.properties, in: bytes.bytes)
        if !forwarded.isEmpty { self.forwarded = forwarded }
        if let seconds = publish.properties.messageExpiryInterval(in: bytes.bytes) {
            expiresAtMs = wallClockMs + Int64(seconds) * 1_000
        }
    }

    /// The packet as the receivers of a message without queue position get it; `nil` if each has to get
    /// another one.
    @inline(__always)
    package var raw: RawPublish? {
        guard isPlain, let base = packet.baseAddress else { return nil }
        return RawPublish(
            packet: base, size: packet.count, topic: topic, payload: payload, is5: is5)
    }
}

/// A PUBLISH of QoS 0 without RETAIN and without properties, encoded once for all receivers of its
/// publisher's version.
package struct RawPublish: BitwiseCopyable {
    package let packet: UnsafeRawPointer
    /// Bytes of the packet.
    package let size: Int
    package let topic: UnsafeRawBufferPointer
    package let payload: UnsafeRawBufferPointer
    package let is5: Bool
}
