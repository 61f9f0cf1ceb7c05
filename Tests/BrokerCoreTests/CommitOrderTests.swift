import BrokerCore
import BrokerFeatures
import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Store
import Structures
import Testing

/// Packets that depend on stored state wait for its commit; no others do.
@Suite("Packets and commits")
struct CommitOrderTests {
    /// A persistent subscriber, a publisher, and a store that completes nothing by itself.
    private struct Scene {
        let link = ShardLink(isImmediate: false)
        let subscriber: Handle
        let publisher: Handle

        init(subscriberQoS: QoS = .atLeastOnce, cleanPublisher: Bool = true) throws {
            subscriber = try link.connect("subscriber", cleanSession: false)
            try link.send(subscriber, .subscribe("a/#", subscriberQoS))
            link.store.completeAll()
            link.turn()
            _ = try link.take(subscriber)
            publisher = try link.connect("publisher", cleanSession: cleanPublisher)
        }
    }

    @Test("PUBACK and delivery wait for the commit; PINGREQ is answered meanwhile")
    func publishWaits() throws {
        let scene = try Scene()
        let link = scene.link
        try link.send(scene.publisher, .publish("a/b", "x", qos: .atLeastOnce, 7), .pingreq)
        try link.send(scene.subscriber, .pingreq)
        #expect(try link.take(scene.publisher) == [.pingresp])
        #expect(try link.take(scene.subscriber) == [.pingresp])
        #expect(link.store.pending.count == 1)

        link.store.completeAll()
        link.turn()
        #expect(try link.take(scene.publisher) == [.puback(7)])
        #expect(try link.take(scene.subscriber) == [.publish("a/b", "x", qos: .atLeastOnce, 1)])
    }

    @Test("the group of a PUBLISH holds the message and its place in each persistent queue")
    func groupIsWhole() throws {
        let scene = try Scene(cleanPublisher: false)
        let link = scene.link
        try link.send(scene.publisher, .publish("a/b", "x", qos: .exactlyOnce, 7))
        let group = try #require(link.store.groups.last)
        #expect(
            group.records == [
                .inbound(session: 2, packetIdentifier: 7),
                .message(
                    1, topic: Array("a/b".utf8), payload: Array("x".utf8), qos: 2, retain: false,
                    expiresAtMs: 0),
                .queued(
                    session: 1, position: 0, message: 1, qos: 1, retain: false, isInWindow: true),
            ])
    }

    @Test("CONNACK and SUBACK of a persistent session wait, a clean session's do not")
    func sessionWaits() throws {
        let link = ShardLink(isImmediate: false)
        let clean = link.open()
        try link.send(clean, .connect(PacketContent.Connect(clientID: "clean")))
        #expect(try link.take(clean) == [.connack(.accepted(sessionPresent: false))])

        let persistent = link.open()
        var connect = PacketContent.Connect(clientID: "persistent")
        connect.cleanSession = false
        // Packets sent before CONNACK are held back, then processed.
        try link.send(persistent, .connect(connect), .subscribe("a", .exactlyOnce), .pingreq)
        #expect(try link.take(persistent) == [])
        link.store.completeAll()
        link.turn()
        #expect(
            try link.take(persistent) == [
                .connack(.accepted(sessionPresent: false)), .pingresp,
            ])
        link.store.completeAll()
        link.turn()
        #expect(try link.take(persistent) == [.suback(1, [2])])
    }

    @Test("commits that complete in the wrong order release in the right one")
    func reorderedCompletions() throws {
        let scene = try Scene()
        let link = scene.link
        let other = try link.connect("other")
        try link.send(scene.publisher, .publish("a/1", "first", qos: .atLeastOnce, 1))
        try link.send(other, .publish("a/2", "second", qos: .atLeastOnce, 1))
        try link.send(scene.publisher, .publish("a/1", "third", qos: .atLeastOnce, 2))
        let tickets = link.store.pending
        #expect(tickets.count == 3)

        // One connection's commit does not wait for another connection's earlier one.
        link.store.complete(tickets[1])
        link.turn()
        #expect(try link.take(other) == [.puback(1)])
        #expect(try link.take(scene.publisher) == [])
        #expect(try link.take(scene.subscriber) == [])

        // On one connection, acknowledgements keep their order [MQTT-4.6.0-2].
        link.store.complete(tickets[2])
        link.turn()
        #expect(try link.take(scene.publisher) == [])
        #expect(try link.take(scene.subscriber) == [])

        link.store.complete(tickets[0])
        link.turn()
        #expect(try link.take(scene.publisher) == [.puback(1), .puback(2)])
        #expect(
            try link.take(scene.subscriber) == [
                .publish("a/1", "first", qos: .atLeastOnce, 1),
                .publish("a/2", "second", qos: .atLeastOnce, 2),
                .publish("a/1", "third", qos: .atLeastOnce, 3),
            ])
    }

    @Test("a clean receiver too sees a stored message only after its commit")
    func cleanReceiverWaits() throws {
        let scene = try Scene()
        let link = scene.link
        for (index, qos) in QoS.allCases.enumerated() {
            let clean = try link.connect("clean\(index)")
            try link.send(clean, .subscribe("a/b", qos))
            _ = try link.take(clean)
            try link.send(scene.publisher, .publish("a/b", "x", qos: .exactlyOnce, 9))
            #expect(try link.take(clean) == [], "QoS \(qos)")
            link.store.completeAll()
            link.turn()
            #expect(try link.take(clean) == [.publish("a/b", "x", qos: qos, 1)])
            try link.send(scene.publisher, .pubrel(9))
            link.store.completeAll()
            link.turn()
            try link.send(clean, .unsubscribe(3, [Array("a/b".utf8)]))
        }
    }

    @Test("QoS 0 leaves at once, also while a stored message waits")
    func atMostOnceDoesNotWait() throws {
        let scene = try Scene()
        let link = scene.link
        try link.send(scene.publisher, .publish("a/b", "stored", qos: .atLeastOnce, 1))
        try link.send(scene.publisher, .publish("a/c", "at once"))
        #expect(try link.take(scene.subscriber) == [.publish("a/c", "at once")])
    }

    @Test("PUBREL to a persistent session waits for the commit of its PUBREC")
    func pubrelWaits() throws {
        let scene = try Scene(subscriberQoS: .exactlyOnce)
        let link = scene.link
        try link.send(scene.publisher, .publish("a/b", "x", qos: .exactlyOnce, 5))
        link.store.completeAll()
        link.turn()
        #expect(try link.take(scene.publisher) == [.pubrec(5)])
        #expect(try link.take(scene.subscriber) == [.publish("a/b", "x", qos: .exactlyOnce, 1)])

        try link.send(scene.subscriber, .pubrec(1), .pingreq)
        #expect(try link.take(scene.subscriber) == [.pingresp])
        #expect(link.store.groups.last?.records == [.released(session: 1, position: 0)])
        link.store.completeAll()
        link.turn()
        #expect(try link.take(scene.subscriber) == [.pubrel(1)])
        try link.send(scene.subscriber, .pubcomp(1))
        #expect(link.store.groups.last?.records == [.finished(session: 1, position: 0)])
    }

    @Test("a connection that closed before the commit is not answered, and the message lives")
    func closedMeanwhile() throws {
        let scene = try Scene()
        let link = scene.link
        try link.send(scene.publisher, .publish("a/b", "x", qos: .atLeastOnce, 7))
        link.lose(scene.publisher)
        link.store.completeAll()
        link.turn()
        #expect(try link.take(scene.publisher) == [])
        #expect(try link.take(scene.subscriber) == [.publish("a/b", "x", qos: .atLeastOnce, 1)])
    }

    @Test("a publisher with too many pending PUBACKs is not read, and its keep alive is suspended")
    func publisherIsPaused() throws {
        let link = ShardLink({ $0.maxUnacknowledgedPublishes = 4 }, isImmediate: false)
        let subscriber = try link.connect("subscriber", cleanSession: false)
        try link.send(subscriber, .subscribe("a", .atLeastOnce))
        link.store.completeAll()
        link.turn()
        let publisher = try link.connect("publisher") { $0.keepAlive = 1 }
        for number: UInt16 in 1...8 {
            let identifier = try #require(PacketIdentifier(number))
            try link.send(publisher, .publish("a", "\(number)", qos: .atLeastOnce, identifier))
        }
        let isHeld = link.shard.holdsInput(publisher)
        #expect(isHeld)
        #expect(link.store.pending.count == 4)
        link.advance(milliseconds: 10_000)
        #expect(!link.closed.contains(publisher))

        link.store.completeAll()
        link.turn()
        link.store.completeAll()
        link.turn()
        let acknowledged: [PacketContent] = (1...8).compactMap { PacketIdentifier($0) }
            .map { .puback($0) }
        #expect(try link.take(publisher) == acknowledged)
        link.advance(milliseconds: 1_600)
        #expect(link.closed.contains(publisher), "its keep alive counts again")
    }

    @Test("an HTTP publish is answered with its counts once it is stored")
    func adminPublishWaits() throws {
        let scene = try Scene()
        let link = scene.link
        let answers = Answers<PublishOutcome>()
        for number in 1...2 {
            link.shard.publish(
                Publication(
                    topic: Array("a/b".utf8), payload: [], qos: .atLeastOnce, retain: false,
                    sequence: SequenceStamp(channel: Array("a".utf8), tag: 0x48)),
                reply: answers.reply)
            link.turn()
            #expect(answers.values.count == number - 1)
            link.store.completeAll()
            link.turn()
            #expect(
                answers.last == .published(PublishCounts(matched: 1, online: 1)))
        }
        let delivered = try link.take(scene.subscriber).map { packet -> [UInt8] in
            if case .publish(let publish) = packet { publish.payload } else { [] }
        }
        #expect(delivered == [[0x48, 1], [0x48, 2]])
    }
}
