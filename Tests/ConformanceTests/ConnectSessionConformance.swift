import HermesTesting
import MQTTCodec
import Testing

@Suite("3.1.2.4 Clean session")
struct ConnectSessionConformance {
    @Test(
        "MQTT-3.1.2-4: clean session 0 resumes the session, and keeps it after disconnection",
        arguments: Transport.all)
    func resumes(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        var client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        for round in UInt16(1)...4 {
            // With DISCONNECT and without.
            if round % 2 == 0 { try client.finish() } else { try client.disconnect() }
            client = try broker.connect("client", cleanSession: false, sessionPresent: true)
            try client.expectNothing()
            try publisher.publish(topic, "\(round)", qos: .atLeastOnce)
            let identifier = try #require(PacketIdentifier(round))
            try client.expect(.publish(topic, "\(round)", qos: .atLeastOnce, identifier))
            try client.send(.puback(identifier))
        }
        try client.expectNothing()
    }

    @Test(
        "MQTT-3.1.2-5: QoS 1 and 2 messages for an offline client are stored, and delivered in order",
        arguments: Transport.all)
    func storesForAbsent(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client", cleanSession: false)
        try client.subscribe([
            PacketContent.Request(broker.topic("two/+"), .exactlyOnce),
            PacketContent.Request(broker.topic("one/+"), .atLeastOnce),
            PacketContent.Request(broker.topic("zero/+"), .atMostOnce),
        ])
        try client.disconnect()
        let publisher = try broker.connect("publisher")
        for (number, qos) in QoS.allCases.reversed().enumerated() {
            for filter in ["two", "one", "zero"] {
                try publisher.publish(
                    broker.topic("\(filter)/\(number)"), "\(filter)\(number)", qos: qos)
            }
        }
        try publisher.publish(broker.topic("else/0"), "no", qos: .exactlyOnce)

        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        // At the lower QoS; messages that this makes QoS 0 are not stored.
        try again.expect(
            .publish(broker.topic("two/0"), "two0", qos: .exactlyOnce, 1),
            .publish(broker.topic("one/0"), "one0", qos: .atLeastOnce, 2),
            .publish(broker.topic("two/1"), "two1", qos: .atLeastOnce, 3),
            .publish(broker.topic("one/1"), "one1", qos: .atLeastOnce, 4))
        try again.expectNothing()
    }

    @Test(
        "MQTT-3.1.2-6: clean session 1 discards all state, before it and after it",
        arguments: Transport.all)
    func discards(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        let watcher = try broker.subscriber("watcher", to: broker.topic("w"), .exactlyOnce)
        // State of every kind: subscribed, in flight, released, queued, received.
        let stored = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        try publisher.publish(topic, "in flight", qos: .atLeastOnce)
        try publisher.publish(topic, "released", qos: .exactlyOnce)
        try stored.expect(
            .publish(topic, "in flight", qos: .atLeastOnce, 1),
            .publish(topic, "released", qos: .exactlyOnce, 2))
        try stored.send(.pubrec(2))
        try stored.expect(.pubrel(2))
        try stored.send(.publish(broker.topic("w"), "first", qos: .exactlyOnce, 9))
        try stored.expect(.pubrec(9))
        try stored.finish()
        try publisher.publish(topic, "queued", qos: .atLeastOnce)

        let clean = try broker.connect("client", cleanSession: true, sessionPresent: false)
        try clean.expectNothing()
        try publisher.publish(topic, "later", qos: .atLeastOnce)
        try clean.expectNothing()
        // Identifier 9 is free for a new message.
        try clean.send(.publish(broker.topic("w"), "second", qos: .exactlyOnce, 9))
        try clean.expect(.pubrec(9))
        try watcher.expect(
            .publish(broker.topic("w"), "first", qos: .exactlyOnce, 1),
            .publish(broker.topic("w"), "second", qos: .exactlyOnce, 2))
        // The clean session's own state ends with its connection.
        try clean.subscribe(topic, .exactlyOnce)
        try clean.finish()
        try publisher.publish(topic, "away", qos: .atLeastOnce)
        let after = try broker.connect("client", cleanSession: false, sessionPresent: false)
        try after.expectNothing()
        try publisher.publish(topic, "present", qos: .atLeastOnce)
        try after.send(.publish(broker.topic("w"), "third", qos: .exactlyOnce, 9))
        try after.expect(.pubrec(9))
        try after.expectNothing()
        try watcher.expect(.publish(broker.topic("w"), "third", qos: .exactlyOnce, 3))
    }

    @Test(
        "MQTT-3.1.2-7: retained messages outlive the session of their publisher and its end",
        arguments: Transport.all)
    func retainedOutlives(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let publisher = try broker.connect("publisher", cleanSession: false)
        try publisher.publish(broker.topic("a"), "kept", qos: .atLeastOnce, retain: true)
        try publisher.disconnect()
        // The session is removed.
        let clean = try broker.connect("publisher", cleanSession: true)
        try clean.publish(broker.topic("b"), "also", qos: .atLeastOnce, retain: true)
        try clean.finish()
        let subscriber = try broker.subscriber(to: broker.topic("a"), .atLeastOnce)
        try subscriber.expect(
            .publish(broker.topic("a"), "kept", qos: .atLeastOnce, 1, retain: true))
        try subscriber.subscribe(broker.topic("b"), .atLeastOnce)
        try subscriber.expect(
            .publish(broker.topic("b"), "also", qos: .atLeastOnce, 2, retain: true))
    }
}
