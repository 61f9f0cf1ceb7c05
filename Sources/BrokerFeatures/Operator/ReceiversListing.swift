import BrokerAPI
import MQTTCodec

/// A question whom a message on a topic would reach now. Its match is made as that of a message, in
/// slices of several turns if very many filters match.
struct ReceiversListing {
    let topic: [UInt8]
    let qos: QoS
    /// The most receivers and groups that are named.
    let limit: Int
    let reply: Reply<TopicReceivers>
}
