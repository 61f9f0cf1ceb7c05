import MQTTCodec

/// New filters of one session that wait for their retained messages, in order and without
/// duplicates: a repeated SUBSCRIBE is served by the walk that has not begun.
package struct RetainedRequests {
    private var filters: [[UInt8]] = []
    /// Index of the next filter.
    private var first = 0
    private var qosOfFilter: [[UInt8]: QoS] = [:]

    package mutating func add(_ filter: [UInt8], _ qos: QoS) {
        if qosOfFilter.updateValue(qos, forKey: filter) == nil { filters.append(filter) }
    }

    /// Puts the filter being served at the front again, to be served from its beginning.
    package mutating func restart(_ filter: [UInt8], _ qos: QoS) {
        guard qosOfFilter[filter] == nil else { return }
        qosOfFilter[filter] = qos
        filters.insert(filter, at: first)
    }

    /// Removes an unsubscribed filter. Its entry in the order is removed lazily, so that removing
    /// many filters costs no more than adding them.
    package mutating func remove(_ filter: [UInt8]) {
        guard qosOfFilter.removeValue(forKey: filter) != nil else { return }
        guard filters.count - first > 2 * qosOfFilter.count + 16 else { return }
        var placed: Set<[UInt8]> = []
        filters = filters[first...].filter { qosOfFilter[$0] != nil && placed.insert($0).inserted }
        first = 0
    }

    package mutating func next() -> (filter: [UInt8], qos: QoS)? {
        while first < filters.count {
            let filter = filters[first]
            first += 1
            if first == filters.count {
                filters.removeAll()
                first = 0
            }
            if let qos = qosOfFilter.removeValue(forKey: filter) { return (filter, qos) }
        }
        return nil
    }
}
