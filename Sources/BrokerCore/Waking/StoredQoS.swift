import BrokerAPI
import MQTTCodec

/// The QoS of a publisher's PUBLISH and what it asks of notifications, in the one byte that the store
/// has for the QoS: bits 0 and 1 are the QoS, bits 4 and 5 the ``WakeRequest``.
struct StoredQoS {
    let qos: QoS
    let wake: WakeRequest

    init(_ qos: QoS, _ wake: WakeRequest) {
        self.qos = qos
        self.wake = wake
    }

    /// `nil` for a byte that holds no QoS, which only damage makes.
    init?(byte: UInt8) {
        guard let qos = QoS(rawValue: byte & 0x0F), let wake = WakeRequest(rawValue: byte >> 4)
        else { return nil }
        self.init(qos, wake)
    }

    var byte: UInt8 { qos.rawValue | wake.rawValue << 4 }
}
