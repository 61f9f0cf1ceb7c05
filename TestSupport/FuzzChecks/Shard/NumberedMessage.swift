import HermesTesting
import MQTTCodec
import Structures

/// A message known by the serial number in its payload.
struct NumberedMessage {
    enum Origin: Hashable {
        case peer(Handle)
        case will(Handle)
        case administrator
    }

    /// Marks a payload that begins with a serial number.
    private static let mark: UInt8 = 0xF5

    let origin: Origin
    let topic: [UInt8]
    let qos: QoS
    let retain: Bool
    /// The step in which it was sent.
    var step: Int
    /// True when the whole packet was sent.
    var isSent = false
    /// The number also came from another source, so nothing is concluded from it.
    var isForged = false
    /// The reason for which no client may get it; `nil` when some may.
    var forbidden: String?
    /// True when a client got it.
    var wasDelivered = false
    /// The broker may treat it as a repetition of another message.
    var mayBeRepetition = false

    /// A payload with the serial number and `size` further bytes.
    static func payload(_ serial: Int, size: Int) -> [UInt8] {
        let high = UInt8(truncatingIfNeeded: serial >> 8)
        let low = UInt8(truncatingIfNeeded: serial)
        return [mark, high, low, ~low] + [UInt8](repeating: low, count: size)
    }

    static func serial(_ payload: [UInt8]) -> Int? {
        guard payload.count >= 4, payload[0] == mark, payload[3] == ~payload[2] else { return nil }
        return Int(payload[1]) << 8 | Int(payload[2])
    }
}
