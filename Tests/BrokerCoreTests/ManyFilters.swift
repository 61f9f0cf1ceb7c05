import BrokerTesting
import HermesTesting
import MQTTCore
import Structures

extension ShardLink {
    /// Subscribes a client to 8,192 filters, which all match topics of 13 levels whose first 12 are `a`.
    func subscribeToManyFilters(_ client: Handle) throws {
        var filters = ["#", "+/#"]
        for _ in 0..<12 { filters = filters.flatMap { ["a/\($0)", "+/\($0)"] } }
        for start in stride(from: 0, to: filters.count, by: 1_024) {
            let requests = filters[start..<start + 1_024]
                .map { PacketContent.Request($0, .exactlyOnce) }
            try send(client, .subscribe(1, requests))
        }
        _ = try take(client)
    }
}
