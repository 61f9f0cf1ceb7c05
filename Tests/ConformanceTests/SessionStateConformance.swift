import HermesTesting
import MQTTCodec
import Testing

@Suite("4.1 Session state, 4.4 delivery retry, 4.5 receipt")
struct SessionStateConformance {
    @Test(
        "MQTT-4.1.0-1: a session keeps its whole state while its client is offline, for a day and more",
        arguments: Transport.all)
    func keepsState(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        let watcher = try broker.subscriber("watcher", to: broker.topic("w"), .atLeastOnce)
        let client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        try publisher.publish(topic, "sent", qos: .atLeastOnce)
        try publisher.publish(topic, "received", qos: .exactlyOnce)
        try client.expect(
            .publish(topic, "sent", qos: .atLeastOnce, 1),
            .publish(topic, "received", qos: .exactlyOnce, 2))
        try client.send(.pubrec(2))
        try client.expect(.pubrel(2))
        try client.send(.publish(broker.topic("w"), "x", qos: .exactlyOnce, 77))
        try client.expect(.pubrec(77))
        try watcher.expect(.publish(broker.topic("w"), "x", qos: .atLeastOnce, 1))
        try client.finish()
        try publisher.publish(topic, "waiting", qos: .exactlyOnce)
        if transport == .memory { try broker.pass(milliseconds: 2 * 86_400_000) }

        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        // Unacknowledged, released, and waiting messages.
        try again.expect(
            .publish(topic, "sent", qos: .atLeastOnce, 1, isDuplicate: true), .pubrel(2),
            .publish(topic, "waiting", qos: .exactlyOnce, 3))
        // A received QoS 2 message is not delivered again.
        try again.send(.publish(broker.topic("w"), "x", qos: .exactlyOnce, 77, isDuplicate: true))
        try again.expect(.pubrec(77))
        try watcher.expectNothing()
        // The subscription.
        try publisher.publish(topic, "new", qos: .atMostOnce)
        try again.expect(.publish(topic, "new"))
        try again.expectNothing()
    }

    @Test(
        "MQTT-4.1.0-2: a clean session lasts as long as its connection, however quiet it is",
        arguments: Transport.all)
    func lastsAsLongAsItsConnection(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.subscriber(to: topic, .atLeastOnce)
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "unacknowledged", qos: .atLeastOnce)
        try client.expect(.publish(topic, "unacknowledged", qos: .atLeastOnce, 1))
        // Longer than an offline session is kept; over TCP only a moment.
        if transport == .memory { try broker.pass(milliseconds: 20 * 86_400_000) }
        try publisher.publish(topic, "x", qos: .atLeastOnce)
        try client.expect(.publish(topic, "x", qos: .atLeastOnce, 2))
        try client.expectNothing()
    }

    @Test(
        "MQTT-4.4.0-1: on return every unacknowledged PUBLISH and PUBREL comes again, as it was",
        arguments: Transport.all)
    func resends(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        let client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        var sent: [PacketContent] = []
        var resent: [PacketContent] = []
        for number in UInt16(1)...12 {
            let qos: QoS = number % 3 == 0 ? .atLeastOnce : .exactlyOnce
            let identifier = try #require(PacketIdentifier(number))
            try publisher.publish(topic, "\(number)", qos: qos, retain: false)
            sent.append(.publish(topic, "\(number)", qos: qos, identifier))
            resent.append(.publish(topic, "\(number)", qos: qos, identifier, isDuplicate: true))
        }
        try client.expect(sent)
        // Acknowledged: 3 and 4. Released: 2 and 7.
        try client.send(.pubrec(2), .puback(3), .pubrec(7), .pubrec(4))
        try client.expect(.pubrel(2), .pubrel(7), .pubrel(4))
        try client.send(.pubcomp(4))
        resent[1] = .pubrel(2)
        resent[6] = .pubrel(7)
        resent.removeSubrange(2...3)
        for _ in 0..<3 {
            try client.finish()
            let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
            try again.expect(resent)
            try again.expectNothing()
            try again.finish()
        }
        // Finally all exchanges complete.
        let last = try broker.connect("client", cleanSession: false, sessionPresent: true)
        for packet in resent {
            try last.expect(packet)
            switch packet {
            case .pubrel(let identifier): try last.send(.pubcomp(identifier))
            case .publish(let publish):
                if case .atLeastOnce(let identifier, _) = publish.delivery {
                    try last.send(.puback(identifier))
                }
            default: Issue.record("\(packet)")
            }
        }
        for packet in resent {
            guard case .publish(let publish) = packet,
                case .exactlyOnce(let identifier, _) = publish.delivery
            else { continue }
            try last.acknowledge(identifier, .exactlyOnce)
        }
        try last.expectNothing()
        try last.finish()
        let empty = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try empty.expectNothing()
    }

    @Test(
        "MQTT-4.4.0-1: nothing is sent again while the connection lasts", arguments: Transport.all)
    func noResendWithoutReconnect(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "x", qos: .exactlyOnce)
        try client.expect(.publish(topic, "x", qos: .exactlyOnce, 1))
        if transport == .memory { try broker.pass(milliseconds: 3_600_000) }
        try client.expectNothing()
        try client.send(.pubrec(1))
        try client.expect(.pubrel(1))
        if transport == .memory { try broker.pass(milliseconds: 3_600_000) }
        try client.expectNothing()
    }

    @Test(
        "MQTT-4.5.0-1: a message reaches the session of every client with a matching subscription",
        arguments: Transport.all, [QoS.atLeastOnce, .exactlyOnce])
    func everySession(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a/b")
        let filters = ["a/b", "a/+", "#", "+/b"]
        var connected: [Client] = []
        for (number, filter) in filters.enumerated() {
            for cleanSession in [true, false] {
                connected.append(
                    try broker.subscriber(
                        "connected\(number)\(cleanSession)", to: broker.topic(filter), qos,
                        cleanSession: cleanSession))
            }
            let absent = try broker.subscriber(
                "absent\(number)", to: broker.topic(filter), qos, cleanSession: false)
            try absent.disconnect()
        }
        let uninvolved = try broker.subscriber("uninvolved", to: broker.topic("b"), qos)
        // The publisher subscribes too.
        let publisher = try broker.subscriber("publisher", to: topic, qos)
        try publisher.publish(topic, "x", qos: qos)
        for client in connected + [publisher] {
            try client.expect(.publish(topic, "x", qos: qos, 1))
            try client.expectNothing()
        }
        for number in filters.indices {
            let client = try broker.connect(
                "absent\(number)", cleanSession: false, sessionPresent: true)
            try client.expect(.publish(topic, "x", qos: qos, 1))
            try client.expectNothing()
        }
        try uninvolved.expectNothing()
    }
}
