import MQTTCodec

extension SubscriptionTrie {
    /// The filters of a session, each with its granted QoS.
    public func subscriptions(of list: List) -> [(filter: [UInt8], qos: QoS)] {
        var result: [(filter: [UInt8], qos: QoS)] = []
        _ = forEachSubscription(of: list, from: 0) { filter, grant in
            result.append((filter, grant.qos))
            return true
        }
        return result
    }
}
