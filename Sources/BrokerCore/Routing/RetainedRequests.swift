import MQTTCodec

/// The new filters of one session that wait for their retained messages, in order, each once: a client that
/// subscribes again before the filter's turn is served by the walk that is still to begin.
struct RetainedRequests {
    private var filters: [[UInt8]] = []
    /// The place of the filter whose turn is next.
    private var first = 0
    private var qosOfFilter: [[UInt8]: QoS] = [:]

    mutating func add(_ filter: [UInt8], _ qos: QoS) {
        if qosOfFilter.updateValue(qos, forKey: filter) == nil { filters.append(filter) }
    }

    /// The filter that was being served is served again, from its beginning.
    mutating func restart(_ filter: [UInt8], _ qos: QoS) {
        guard qosOfFilter[filter] == nil else { return }
        qosOfFilter[filter] = qos
        filters.insert(filter, at: first)
    }

    /// The subscription is gone. Its place in the order goes with the next ones, so that removing many costs
    /// no more than adding them did.
    mutating func remove(_ filter: [UInt8]) {
        guard qosOfFilter.removeValue(forKey: filter) != nil else { return }
        guard filters.count - first > 2 * qosOfFilter.count + 16 else { return }
        var placed: Set<[UInt8]> = []
        filters = filters[first...].filter { qosOfFilter[$0] != nil && placed.insert($0).inserted }
        first = 0
    }

    mutating func next() -> (filter: [UInt8], qos: QoS)? {
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
