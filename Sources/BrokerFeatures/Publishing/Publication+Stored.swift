import BrokerAPI
import BrokerCore
import MQTTCore

/// A message of the admin plane as the store keeps it until it is published.
extension Publication {
    /// The payload, with properties and their size behind it, as ``Message/storedPayload`` has them.
    var storedPayload: [UInt8] {
        guard !properties.isEmpty else { return payload }
        return payload + properties
            + [UInt8(properties.count >> 8), UInt8(truncatingIfNeeded: properties.count)]
    }

    var storedQoS: UInt8 { StoredQoS(qos, wake, hasProperties: !properties.isEmpty).byte }
}
