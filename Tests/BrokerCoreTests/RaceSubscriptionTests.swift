import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Store
import Structures
import Testing

/// Subscriptions that change while messages for them are on their way.
@Suite("Races of subscriptions")
struct RaceSubscriptionTests {
    // MARK: SUBSCRIBE while a retained message is being published

    /// ```
    ///   publisher            broker / store            subscriber
    ///     PUBLISH retain v2 --> retained := v2, commit 1 ...
    ///                           <------------------------- SUBSCRIBE
    ///                           SUBACK --------------------->
    ///                           (v2 waits for commit 1)
    ///                           commit 1 done
    ///                           PUBLISH v2, RETAIN 1 -------->  once; never v1
    /// ```
    @Test(
        "SUBSCRIBE while a retained message waits for its commit gets the new value, after the commit, once",
        arguments: [QoS.atMostOnce, .atLeastOnce, .exactlyOnce], [true, false])
    func subscribeDuringRetainedPublish(qos: QoS, cleanSession: Bool) throws {
        let link = ShardLink(isImmediate: false)
        let publisher = try link.connect("publisher")
        try link.send(publisher, .publish("r", "v1", qos: .atLeastOnce, 1, retain: true))
        let subscriber = try link.connect("subscriber", cleanSession: cleanSession)
        try link.send(publisher, .publish("r", "v2", qos: .atLeastOnce, 2, retain: true))
        let pending = link.store.pending
        try link.send(subscriber, .subscribe("r", qos))
        // Completes all but the publication's commit.
        for ticket in link.store.pending where !pending.contains(ticket) {
            link.store.complete(ticket)
        }
        link.turn()
        #expect(try link.takePayloads(subscriber).isEmpty)
        link.commitAll()
        let packets = try link.take(subscriber).filter { $0.isPublish }
        let effective = min(qos, .atLeastOnce)
        #expect(packets == [.publish("r", "v2", qos: effective, 1, retain: true)])
    }

    /// ```
    ///   subscriber           broker                     publisher
    ///     SUBSCRIBE ----------> installed; its retained messages come at the end of the turn
    ///                           <------------------------ PUBLISH retain v2
    ///     <---- v2, RETAIN 0   live
    ///     <---- v2, RETAIN 1   what is retained by then; never v1 behind v2
    /// ```
    @Test("a value published in the turn of SUBSCRIBE is never followed by the one before it")
    func publishInTheTurnOfSubscribe() throws {
        for qos in QoS.allCases {
            let link = ShardLink()
            let publisher = try link.connect("publisher")
            try link.send(publisher, .publish("r", "v1", qos: qos, 1, retain: true))
            let subscriber = try link.connect("subscriber")
            let subscribe = try PacketContent.subscribe("r", qos).encoded()
            _ = subscribe.withUnsafeBytes { link.shard.receive(subscriber, $0) }
            try link.send(publisher, .publish("r", "v2", qos: qos, 2, retain: true))
            let payloads = try link.takeAll(subscriber)
            #expect(!payloads.isEmpty)
            #expect(payloads.allSatisfy { $0 == "v2" }, "\(payloads) at QoS \(qos)")
        }
    }

    @Test("retained values that complete in the wrong order are each seen after their own commit")
    func retainedOutOfOrder() throws {
        let link = ShardLink(isImmediate: false)
        let subscriber = try link.connect("subscriber")
        let publisher = try link.connect("publisher")
        try link.send(publisher, .publish("r/1", "one", qos: .atLeastOnce, 1, retain: true))
        try link.send(publisher, .publish("r/2", "two", qos: .atLeastOnce, 2, retain: true))
        link.store.complete(link.store.pending[1])
        link.turn()
        try link.send(subscriber, .subscribe("r/1", .atLeastOnce))
        #expect(try link.takePayloads(subscriber).isEmpty)
        link.commitAll()
        #expect(try link.takePayloads(subscriber) == ["one"])
    }

    // MARK: UNSUBSCRIBE with messages on their way

    /// ```
    ///   publisher         broker                      subscriber
    ///     1 2 3 4 5 -------> 1 2 sent, 3 4 5 wait
    ///                        <------------------------- UNSUBSCRIBE
    ///     6 --------------->  no subscriber
    ///                        UNSUBACK ------------------>
    ///                        <-------------------------- PUBACK 1
    ///                        3 ------------------------->  what was routed before is finished
    /// ```
    @Test(
        "[MQTT-3.10.4-3] UNSUBSCRIBE ends no delivery that was begun, and begins none",
        arguments: QoS.allCases.dropFirst(), RaceCompletion.allCases)
    func unsubscribe(qos: QoS, completion: RaceCompletion) throws {
        let link = ShardLink({ $0.maxInFlight = 2 }, isImmediate: false)
        let subscriber = try link.subscriber("subscriber", to: "a", qos)
        let publisher = try link.connect("publisher")
        try link.publish(["1", "2"], to: "a", qos: qos, from: publisher)
        link.commitAll()
        let begun = try link.take(subscriber)
        // These wait, and are not even committed.
        for number in 3...5 {
            try link.send(publisher, .publish("a", "\(number)", qos: qos, .init(number: number)))
        }
        if completion == .before { link.commitAll() }
        try link.send(subscriber, .unsubscribe(9, [Array("a".utf8)]))
        try link.send(publisher, .publish("a", "6", qos: qos, 6))
        completion.complete(link)
        let answered = try link.take(subscriber)
        #expect(answered.contains(.unsuback(9)))
        for case .publish(let publish) in begun {
            guard let identifier = publish.packetIdentifier else { continue }
            try link.send(
                subscriber, qos == .atLeastOnce ? .puback(identifier) : .pubrec(identifier))
        }
        link.commitAll()
        #expect(
            try begun.payloads + answered.payloads + link.takeAll(subscriber)
                == ["1", "2", "3", "4", "5"])
    }

    @Test("[MQTT-3.10.4-2] no retained message follows UNSUBACK, however many were on their way")
    func unsubscribeDuringRetained() throws {
        let link = ShardLink()
        let publisher = try link.connect("publisher")
        for number in 0..<5_000 {
            try link.send(publisher, .publish("r/\(number)", "x", retain: true))
        }
        for cleanSession in [true, false] {
            let subscriber = try link.connect("subscriber", cleanSession: cleanSession)
            try link.send(subscriber, .subscribe("r/#", .atMostOnce))
            try link.send(subscriber, .unsubscribe(2, [Array("r/#".utf8)]))
            // The other filter's messages belong to another walk.
            try link.send(subscriber, .subscribe("r/7", .atMostOnce))
            for _ in 0..<20 { link.turn() }
            let packets = try link.take(subscriber)
            let end = try #require(packets.firstIndex(of: .unsuback(2)))
            #expect(packets[..<end].contains { $0.isPublish }, "the race did not take place")
            let behind = packets[end...].filter { $0.isPublish }
            #expect(
                behind == [.publish("r/7", "x", retain: true)], "\(behind.count) behind UNSUBACK")
            let figures = link.shard.figures
            #expect(figures.retainedWalks == 0)
        }
    }

    @Test("a repeated SUBSCRIBE: the new QoS applies to messages routed after it")
    func replacedInFlight() throws {
        let link = ShardLink(isImmediate: false)
        let subscriber = try link.subscriber("subscriber", to: "a", .exactlyOnce)
        let publisher = try link.connect("publisher")
        try link.send(publisher, .publish("a", "1", qos: .exactlyOnce, 1))
        try link.send(subscriber, .subscribe("a", .atLeastOnce))
        try link.send(publisher, .publish("a", "2", qos: .exactlyOnce, 2))
        link.commitAll()
        let messages = try link.take(subscriber).filter(\.isPublish)
        #expect(
            messages == [
                .publish("a", "1", qos: .exactlyOnce, 1), .publish("a", "2", qos: .atLeastOnce, 2),
            ])
    }
}

extension PacketContent {
    fileprivate var isPublish: Bool {
        if case .publish = self { true } else { false }
    }
}
