import HermesTesting
import Testing

@Suite("MQTT 5.0, 3.3.1.3 and 3.8.3.1: retained messages")
struct Retain5Conformance {
    @Test(
        "MQTT5-3.3.1-5, MQTT5-3.3.1-8: RETAIN 1 replaces the retained message, RETAIN 0 changes nothing",
        arguments: Transport.all)
    func replaces(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "first", qos: 1, retain: true, [.user("n", "1")])
        try publisher.publish5(topic, "second", qos: 2, retain: true, [.user("n", "2")])
        try publisher.publish5(topic, "third", qos: 1)
        try publisher.publish5(topic, "", qos: 1)
        let late = try broker.subscriber5("late", to: topic, 2)
        try late.expect5(.publish(topic, "second", qos: 2, 1, retain: true, [.user("n", "2")]))
        try late.expectNothing()
    }

    @Test(
        "MQTT5-3.3.1-6, MQTT5-3.3.1-7: an empty retained message is delivered, removes the retained one, and is not kept",
        arguments: Transport.all)
    func empties(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", retain: true)
        try publisher.publish5(topic, "", retain: true, [.user("n", "v")])
        try watcher.expect5(
            .publish(topic, "x"), .publish(topic, "", [.user("n", "v")]))
        let late = try broker.subscriber5("late", to: topic, 0)
        try late.expectNothing()
    }

    @Test(
        "MQTT5-3.3.1-9, MQTT5-3.8.4-4: Retain Handling 0 brings retained messages with every SUBSCRIBE",
        arguments: Transport.all)
    func handlingAlways(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", retain: true)
        let client = try broker.connect5("client")
        for _ in 0..<3 {
            try client.subscribe5(topic, 0)
            try client.expect5(.publish(topic, "x", retain: true))
        }
        try client.expectNothing()
    }

    @Test(
        "MQTT5-3.3.1-10, trap 50: Retain Handling 1 brings them only to a new subscription",
        arguments: Transport.all)
    func handlingNew(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", retain: true)
        let client = try broker.connect5("client", expiry: 60)
        try client.subscribe5(topic, 0x10)
        try client.expect5(.publish(topic, "x", retain: true))
        try client.subscribe5(topic, 0x11)
        try client.expectNothing()
        try client.finish()
        let again = try broker.connect5(
            "client", cleanStart: false, expiry: 60, sessionPresent: true)
        try again.subscribe5(topic, 0x10)
        try again.expectNothing()
        try again.unsubscribe5(topic)
        try again.subscribe5(topic, 0x10)
        try again.expect5(.publish(topic, "x", retain: true))
        try again.expectNothing()
    }

    @Test(
        "MQTT5-3.3.1-11, trap 50: Retain Handling 2 brings none", arguments: Transport.all)
    func handlingNever(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", retain: true)
        let client = try broker.connect5("client")
        try client.subscribe5(topic, 0x20)
        try client.subscribe5(topic, 0x22)
        try client.expectNothing()
        try publisher.publish5(topic, "y", retain: true)
        try client.expect5(.publish(topic, "y"))
        try client.expectNothing()
    }

    @Test(
        "MQTT5-3.3.1-12, MQTT5-3.3.1-13, trap 50: Retain As Published keeps the publisher's RETAIN; a new subscription's messages have RETAIN 1 either way",
        arguments: Transport.all)
    func asPublished(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let lowered = try broker.subscriber5("lowered", to: topic, 0)
        let kept = try broker.subscriber5("kept", to: topic, 0x08)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "no")
        try publisher.publish5(topic, "yes", retain: true)
        try lowered.expect5(.publish(topic, "no"), .publish(topic, "yes"))
        try kept.expect5(.publish(topic, "no"), .publish(topic, "yes", retain: true))
        for (name, options) in [("late", UInt8(0)), ("later", 0x08)] {
            let late = try broker.subscriber5(name, to: topic, options)
            try late.expect5(.publish(topic, "yes", retain: true))
            try late.expectNothing()
        }
        try lowered.expectNothing()
    }

    @Test(
        "MQTT5-3.3.1-13, trap 49: Retain As Published holds for messages that wait, and when they are sent again",
        arguments: Transport.all)
    func asPublishedWhenQueued(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let first = try broker.subscriber5(to: topic, 0x0A, expiry: 60)
        try first.finish()
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "yes", qos: 1, retain: true)
        try publisher.publish5(topic, "no", qos: 2)
        for isDuplicate in [false, true] {
            let again = try broker.connect5(
                "subscriber", cleanStart: false, expiry: 60, sessionPresent: true)
            try again.expect5(
                .publish(topic, "yes", qos: 1, 1, isDuplicate: isDuplicate, retain: true),
                .publish(topic, "no", qos: 2, 2, isDuplicate: isDuplicate))
            try again.expectNothing()
            try again.finish()
        }
    }

    @Test(
        "Trap 21: retained messages come with SUBSCRIBE, and not again with a resume",
        arguments: Transport.all)
    func notOnResume(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", qos: 1, retain: true)
        let client = try broker.subscriber5("client", to: topic, 1, expiry: 60)
        try client.expect5(.publish(topic, "x", qos: 1, 1, retain: true))
        try client.send5(.puback(1))
        try client.expectNothing()
        try client.finish()
        let again = try broker.connect5(
            "client", cleanStart: false, expiry: 60, sessionPresent: true)
        try again.expectNothing()
    }
}
