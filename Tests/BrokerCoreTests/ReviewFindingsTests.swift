import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import Store
import Structures
import Testing

/// Suspected errors in durable queues and in rejections, one test for each.
@Suite("Findings of a review")
struct ReviewFindingsTests {
    @Test("QoS 0 delayed by a commit leaves no horizon beyond the stored queue")
    func horizonOfQoS0() throws {
        let link = ShardLink(isImmediate: false)
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("status", .atMostOnce))
        link.store.completeAll()
        link.turn()
        _ = try link.take(phone)
        let office = try link.connect("office")
        try link.send(office, .publish("status", "1", qos: .atLeastOnce, retain: true))
        #expect(try link.take(phone).isEmpty, "it waits for its retained value")
        link.store.completeAll()
        link.turn()
        #expect(try link.take(phone) == [.publish("status", "1")])
        try link.send(phone, .disconnect)

        // A restart subtracts one from the other.
        var end: UInt64 = 0
        var horizon: UInt64 = 0
        for record in link.store.records {
            switch record {
            case .queued(_, let position, _, _, _, let isInWindow):
                end = position + 1
                if isInWindow { horizon = end }
            case .horizon(_, let position): horizon = position
            default: continue
            }
            #expect(horizon <= end)
        }
    }

    @Test("a publisher that waits for a store that refuses outlives its keep alive, and no longer")
    func keepAliveWhileRefusing() throws {
        let link = ShardLink()
        let publisher = try link.connect("publisher") { $0.keepAlive = 10 }
        link.store.isAccepting = false
        link.turn()
        try link.send(publisher, .publish("r", "1", qos: .atLeastOnce, retain: true))
        for _ in 0..<50 { link.advance(milliseconds: 3_000) }
        #expect(link.closed.isEmpty)
        #expect(try link.take(publisher).isEmpty)
        link.store.isAccepting = true
        link.turn()
        #expect(try link.take(publisher) == [.puback(1)])
        link.advance(milliseconds: 14_000)
        #expect(link.closed.isEmpty)
        link.advance(milliseconds: 2_000)
        #expect(link.closed == [publisher])
        #expect(link.closeReasons == [.keepAlive])
    }
}
