import BrokerAPI
import MQTTCodec
import MQTTCore

/// The QoS of a publisher's PUBLISH, what it asks of notifications, and whether it has properties, in the
/// one byte that the store has for the QoS: bits 0 and 1 are the QoS, bits 4 and 5 the ``WakeRequest``,
/// bit 6 says that properties stand behind the payload (``Message/storedPayload``).
package struct StoredQoS {
    private static var propertiesBit: UInt8 { 0x40 }

    package let qos: QoS
    package let wake: WakeRequest
    package let hasProperties: Bool

    package init(_ qos: QoS, _ wake: WakeRequest, hasProperties: Bool = false) {
        self.qos = qos
        self.wake = wake
        self.hasProperties = hasProperties
    }

    /// `nil` for a byte that holds no QoS, which only damage makes.
    package init?(byte: UInt8) {
        guard let qos = QoS(rawValue: byte & 0x0F),
            let wake = WakeRequest(rawValue: byte >> 4 & 3), byte & 0x80 == 0
        else { return nil }
        self.init(qos, wake, hasProperties: byte & Self.propertiesBit != 0)
    }

    package var byte: UInt8 {
        qos.rawValue | wake.rawValue << 4 | (hasProperties ? Self.propertiesBit : 0)
    }
}

/// A stored payload and the properties behind it.
package struct StoredContent {
    package let payload: UnsafeRawBufferPointer
    /// Empty for none.
    package let properties: UnsafeRawBufferPointer
    /// The properties, checked; `nil` for none, and for some that damage has changed, which are left
    /// out.
    package let forwarded: ForwardedProperties?

    /// `published` is what the store has for the QoS.
    package init(_ stored: UnsafeRawBufferPointer, _ published: StoredQoS?) {
        guard published?.hasProperties == true, let (payload, properties) = Message.split(stored)
        else {
            self.payload = stored
            properties = UnsafeRawBufferPointer(start: nil, count: 0)
            forwarded = nil
            return
        }
        self.payload = payload
        self.properties = properties
        forwarded = try? ForwardedProperties(
            stored: ByteRange(offset: 0, count: properties.count), in: properties.bytes)
    }
}
