import HermesTesting
import MQTTCodec
import Testing

@Suite("4.6 Message ordering")
struct OrderingConformance {
    /// Messages 1, 2, … with QoS 1 and 2 in turn, as received.
    private func deliveries(
        _ topic: String, _ numbers: ClosedRange<UInt16>, isDuplicate: Bool = false
    ) throws -> [PacketContent] {
        try numbers.map { number in
            .publish(
                topic, "\(number)", qos: number % 2 == 0 ? .exactlyOnce : .atLeastOnce,
                try #require(PacketIdentifier(number)), isDuplicate: isDuplicate)
        }
    }

    @Test(
        "MQTT-4.6.0-1: re-sent messages keep their original order, QoS 1 and 2 together",
        arguments: Transport.all)
    func orderOfRedelivery(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        var client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        for number in 1...30 {
            try publisher.publish(
                topic, "\(number)", qos: number % 2 == 0 ? .exactlyOnce : .atLeastOnce)
        }
        try client.expect(try deliveries(topic, 1...20))
        // Acknowledged out of order, so that waiting messages fill the gaps.
        try client.send(.puback(7), .puback(3))
        try client.acknowledge(10, .exactlyOnce)
        try client.expect(try deliveries(topic, 21...23))
        try client.finish()
        for _ in 0..<2 {
            client = try broker.connect("client", cleanSession: false, sessionPresent: true)
            let again = try deliveries(topic, 1...23, isDuplicate: true).enumerated()
                .filter { ![2, 6, 9].contains($0.offset) }.map(\.element)
            try client.expect(again)
            try client.expectNothing()
            try client.finish()
        }
    }

    @Test(
        "MQTT-4.6.0-2: PUBACKs leave in the order of their PUBLISH packets",
        arguments: Transport.all)
    func orderOfPubacks(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        // Every other message is stored, and every third is retained.
        let stored = try broker.subscriber(
            "stored", to: broker.topic("1"), .atLeastOnce, cleanSession: false)
        try stored.disconnect()
        let client = try broker.connect("client", cleanSession: false)
        let identifiers: [PacketIdentifier] = [9, 3, 0xFFFF, 1, 8, 2, 0x100, 7, 4]
        var bytes: [UInt8] = []
        for (number, identifier) in identifiers.enumerated() {
            bytes += try PacketContent.publish(
                broker.topic("\(number % 2)"), "x", qos: .atLeastOnce, identifier,
                retain: number % 3 == 0
            ).encoded()
        }
        try client.send(bytes: bytes)
        try client.expect(identifiers.map { .puback($0) })
        try client.expectNothing()
    }

    @Test(
        "MQTT-4.6.0-3: PUBRECs leave in the order of their PUBLISH packets",
        arguments: Transport.all)
    func orderOfPubrecs(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let stored = try broker.subscriber(
            "stored", to: broker.topic("1"), .exactlyOnce, cleanSession: false)
        try stored.disconnect()
        let client = try broker.connect("client")
        let identifiers: [PacketIdentifier] = [9, 3, 0xFFFF, 1, 8, 9, 2, 0x100, 3, 7, 4]
        var bytes: [UInt8] = []
        for (number, identifier) in identifiers.enumerated() {
            // Repeated ones too, in their order.
            bytes += try PacketContent.publish(
                broker.topic("\(number % 2)"), "x", qos: .exactlyOnce, identifier
            ).encoded()
        }
        try client.send(bytes: bytes)
        try client.expect(identifiers.map { .pubrec($0) })
        // PUBCOMPs in the order of the PUBRELs.
        let released: [PacketIdentifier] = [2, 9, 1, 0xFFFF, 44, 3]
        try client.send(bytes: try released.flatMap { try PacketContent.pubrel($0).encoded() })
        try client.expect(released.map { .pubcomp($0) })
        try client.expectNothing()
    }

    @Test(
        "MQTT-4.6.0-4: PUBRELs leave in the order of the PUBRECs", arguments: Transport.all,
        [true, false])
    func orderOfPubrels(transport: Transport, cleanSession: Bool) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.subscriber(to: topic, .exactlyOnce, cleanSession: cleanSession)
        let publisher = try broker.connect("publisher")
        for number in 1...8 { try publisher.publish(topic, "\(number)", qos: .exactlyOnce) }
        for number in UInt16(1)...8 {
            try client.expect(
                .publish(
                    topic, "\(number)", qos: .exactlyOnce, try #require(PacketIdentifier(number))))
        }
        // In the order of the PUBRECs, not of the messages; includes unknown and repeated ones.
        let received: [PacketIdentifier] = [5, 2, 8, 99, 1, 5, 3, 7, 4, 6]
        try client.send(bytes: try received.flatMap { try PacketContent.pubrec($0).encoded() })
        try client.expect(received.map { .pubrel($0) })
        try client.expectNothing()
    }

    @Test(
        "MQTT-4.6.0-5: every topic is ordered, towards every kind of subscriber",
        arguments: Transport.all, QoS.allCases)
    func everyTopicIsOrdered(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let publisher = try broker.connect("publisher")
        var receivers: [Client] = []
        for (number, filter) in ["a", "b", "#", "+"].enumerated() {
            receivers.append(
                try broker.subscriber(
                    "receiver\(number)", to: broker.topic(filter), qos,
                    cleanSession: number % 2 == 0))
        }
        var bytes: [UInt8] = []
        for number in UInt16(1)...18 {
            bytes += try PacketContent.publish(
                broker.topic(number % 3 == 0 ? "b" : "a"), "\(number)", qos: qos,
                try #require(PacketIdentifier(number))
            ).encoded()
        }
        try publisher.send(bytes: bytes)
        try publisher.fence()
        for (index, receiver) in receivers.enumerated() {
            let payloads = try receiver.takeAll().compactMap { packet -> String? in
                guard case .publish(let publish) = packet else { return nil }
                return String(decoding: publish.payload, as: UTF8.self)
            }
            let numbers = (1...18).filter { number in
                index == 0 ? number % 3 != 0 : index == 1 ? number % 3 == 0 : true
            }
            #expect(payloads == numbers.map { "\($0)" })
        }
    }

    @Test(
        "MQTT-4.6.0-6: waiting, re-sent and new messages arrive in published order",
        arguments: Transport.all)
    func orderTowardsSubscribers(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        var client = try broker.subscriber("client", to: topic, .atLeastOnce, cleanSession: false)
        func publish(_ numbers: ClosedRange<Int>) throws {
            for number in numbers { try publisher.publish(topic, "\(number)", qos: .atLeastOnce) }
        }
        // 1 to 20 are sent, 21 to 25 wait for the window; then the client goes offline.
        try publish(1...25)
        for number in UInt16(1)...20 {
            try client.expect(
                .publish(
                    topic, "\(number)", qos: .atLeastOnce, try #require(PacketIdentifier(number))))
        }
        try client.send(.puback(4), .puback(2))
        try client.expect(
            .publish(topic, "21", qos: .atLeastOnce, 21),
            .publish(topic, "22", qos: .atLeastOnce, 22))
        try client.finish()
        try publish(26...30)
        client = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try publish(31...35)
        var expected = Array(UInt16(1)...35)
        expected.removeAll { $0 == 2 || $0 == 4 }
        for number in expected {
            let identifier = try #require(PacketIdentifier(number))
            try client.expect(
                .publish(
                    topic, "\(number)", qos: .atLeastOnce, identifier, isDuplicate: number <= 22))
            try client.send(.puback(identifier))
        }
        try client.expectNothing()
        // Even with room in the window, waiting messages come after re-sent ones.
        try publish(36...37)
        try client.expect(
            .publish(topic, "36", qos: .atLeastOnce, 36),
            .publish(topic, "37", qos: .atLeastOnce, 37))
        try client.finish()
        try publish(38...39)
        client = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try publish(40...40)
        try client.expect(
            .publish(topic, "36", qos: .atLeastOnce, 36, isDuplicate: true),
            .publish(topic, "37", qos: .atLeastOnce, 37, isDuplicate: true),
            .publish(topic, "38", qos: .atLeastOnce, 38),
            .publish(topic, "39", qos: .atLeastOnce, 39),
            .publish(topic, "40", qos: .atLeastOnce, 40))
        try client.expectNothing()
    }

    @Test(
        "MQTT-4.6.0-6: a QoS 0 message does not pass an earlier one of its topic that still waits",
        arguments: Transport.all)
    func loweredMessagesKeepOrder(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        // Granted QoS 0; a persistent receiver makes the broker commit.
        let client = try broker.subscriber("client", to: topic, .atMostOnce)
        let stored = try broker.subscriber("stored", to: topic, .exactlyOnce, cleanSession: false)
        let publisher = try broker.connect("publisher")
        var bytes: [UInt8] = []
        for number in UInt16(1)...15 {
            bytes += try PacketContent.publish(
                topic, "\(number)", qos: .exactlyOnce, try #require(PacketIdentifier(number))
            ).encoded()
        }
        try publisher.send(bytes: bytes)
        for number in UInt16(1)...15 {
            try client.expect(.publish(topic, "\(number)"))
            try stored.expect(
                .publish(
                    topic, "\(number)", qos: .exactlyOnce, try #require(PacketIdentifier(number))))
        }
        try client.expectNothing()
    }
}
