import BrokerAPI
import MQTTCodec

/// The QoS of a publisher's PUBLISH and what it asks of notifications, in the one byte that the store
/// has for the QoS: bits 0 and 1 are the QoS, bits 4 and 5 the ``WakeRequest``.
package struct StoredQoS {
    package let qos: QoS
    package let wake: WakeRequest

    package init(_ qos: QoS, _ wake: WakeRequest) {
        self.qos = qos
        self.wake = wake
    }

    /// `nil` for a byte that holds no QoS, which only damage makes.
    package init?(byte: UInt8) {
        guard let qos = QoS(rawValue: byte & 0x0F), let wake = WakeRequest(rawValue: byte >> 4)
        else { return nil }
        self.init(qos, wake)
    }

    package var byte: UInt8 { qos.rawValue | wake.rawValue << 4 }
}
