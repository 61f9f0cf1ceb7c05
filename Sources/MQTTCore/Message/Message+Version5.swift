import MQTTCodec
import Structures

/// A message on its way to receivers of MQTT 5.0, each of which gets a header of its own.
extension Message {
    /// The sizes of the message's PUBLISH for one receiver; `nil` for one beyond any receiver's.
    public func layout5(qos: QoS, hop: PublishHop) -> PublishLayout5? {
        PublishLayout5(
            topicCount: topic.count, payloadCount: payload.count, qos: qos, hop: hop,
            forwardedCount: properties.count)
    }

    /// Appends the message as a PUBLISH for one receiver; `layout` is that of the same QoS and hop.
    public func append(
        to output: inout OutputQueue, _ layout: PublishLayout5, qos: QoS, retain: Bool,
        isDuplicate: Bool, packetIdentifier: UInt16, hop: PublishHop, pool: BytePool
    ) {
        let payload = payload
        let isShared = sharesPayload
        let destination = output.append(
            layout.headerCount + (isShared ? 0 : payload.count), pool: pool)
        let properties = properties
        PublishEncoder5.writeHeader(
            layout, to: destination, topic: topic, qos: qos, retain: retain,
            isDuplicate: isDuplicate, packetIdentifier: packetIdentifier, hop: hop,
            forwarded: properties.isEmpty ? nil : ForwardedProperties(whole: properties),
            forwardedSource: properties)
        if isShared {
            appendPayload(to: &output, pool)
        } else if let base = payload.baseAddress {
            (destination + layout.headerCount).copyMemory(
                from: base, byteCount: payload.count)
        }
    }
}
