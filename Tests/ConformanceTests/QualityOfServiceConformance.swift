import HermesTesting
import MQTTCodec
import Testing

@Suite("4.3 Quality of service")
struct QualityOfServiceConformance {
    @Test(
        "MQTT-4.3.1-1: QoS 0 is sent once, with QoS 0 and DUP 0, and never re-sent",
        arguments: Transport.all)
    func atMostOnce(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        let lowered = try broker.subscriber("lowered", to: topic, .atMostOnce)
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "x")
        try client.expectBytes(RawPacket.publish(topic: Array(topic.utf8), payload: [0x78]))
        try publisher.publish(topic, "y", qos: .exactlyOnce)
        for payload: UInt8 in [0x78, 0x79] {
            try lowered.expectBytes(
                RawPacket.publish(topic: Array(topic.utf8), payload: [payload]))
        }
        try client.expect(.publish(topic, "y", qos: .exactlyOnce, 1))
        try client.acknowledge(1, .exactlyOnce)
        try client.expectNothing()
        try client.finish()
        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try again.expectNothing()
    }

    @Test(
        "MQTT-4.3.2-1: QoS 1 takes a free identifier, DUP 0, and stays unacknowledged until PUBACK",
        arguments: Transport.all)
    func atLeastOnceSender(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.subscriber("client", to: topic, .atLeastOnce, cleanSession: false)
        let publisher = try broker.connect("publisher")
        // 20 messages fill the window; further ones wait for an acknowledgement.
        for number in 0..<22 { try publisher.publish(topic, "\(number)", qos: .atLeastOnce) }
        for number in UInt16(0)..<20 {
            try client.expectBytes(
                RawPacket.publish(
                    firstByte: 0x32, topic: Array(topic.utf8), identifier: number + 1,
                    payload: Array("\(number)".utf8)))
        }
        try client.expectNothing()
        // Acknowledgements of unused identifiers have no effect.
        try client.send(.puback(21), .pubcomp(22), .puback(0xFFFF))
        try client.expectNothing()
        // PUBACK has, once.
        try client.send(.puback(5))
        try client.expect(.publish(topic, "20", qos: .atLeastOnce, 21))
        try client.send(.puback(5))
        try client.expectNothing()
        try client.send(.puback(1))
        try client.expect(.publish(topic, "21", qos: .atLeastOnce, 22))
        try client.finish()
        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        for number in UInt16(1)...22 where number != 1 && number != 5 {
            try again.expect(
                .publish(
                    topic, "\(number - 1)", qos: .atLeastOnce,
                    try #require(PacketIdentifier(number)), isDuplicate: true))
        }
        try again.expectNothing()
    }

    @Test(
        "MQTT-4.3.2-2: after PUBACK the same identifier is a new message, with DUP or without",
        arguments: Transport.all)
    func atLeastOnceReceiver(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let stored = try broker.subscriber("stored", to: topic, .exactlyOnce, cleanSession: false)
        try stored.disconnect()
        let watcher = try broker.subscriber("watcher", to: topic, .exactlyOnce)
        let client = try broker.connect("client")
        let flags = [false, true, true, false]
        for (number, isDuplicate) in flags.enumerated() {
            try client.send(
                .publish(topic, "\(number)", qos: .atLeastOnce, 9, isDuplicate: isDuplicate))
            try client.expect(.puback(9))
        }
        try client.expectNothing()
        let returned = try broker.connect("stored", cleanSession: false, sessionPresent: true)
        for receiver in [watcher, returned] {
            for number in flags.indices {
                let identifier = try #require(PacketIdentifier(UInt16(number + 1)))
                try receiver.expect(
                    .publish(topic, "\(number)", qos: .atLeastOnce, identifier))
            }
            try receiver.expectNothing()
        }
    }

    @Test(
        "MQTT-4.3.3-1: QoS 2 is unacknowledged until PUBREC, its PUBREL until PUBCOMP",
        arguments: Transport.all)
    func exactlyOnceSender(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        var client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "1", qos: .exactlyOnce)
        try publisher.publish(topic, "2", qos: .exactlyOnce)
        for number: UInt8 in [1, 2] {
            try client.expectBytes(
                RawPacket.publish(
                    firstByte: 0x34, topic: Array(topic.utf8), identifier: UInt16(number),
                    payload: [0x30 + number]))
        }
        try client.finish()
        client = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try client.expect(
            .publish(topic, "1", qos: .exactlyOnce, 1, isDuplicate: true),
            .publish(topic, "2", qos: .exactlyOnce, 2, isDuplicate: true))
        // PUBREL with the identifier of PUBREC; from now on no PUBLISH, even if PUBREC is repeated.
        try client.send(.pubrec(1))
        try client.expect(.pubrel(1))
        try client.send(.pubrec(1))
        try client.expect(.pubrel(1))
        try client.expectNothing()
        for _ in 0..<2 {
            try client.finish()
            client = try broker.connect("client", cleanSession: false, sessionPresent: true)
            try client.expect(
                .pubrel(1), .publish(topic, "2", qos: .exactlyOnce, 2, isDuplicate: true))
            try client.expectNothing()
        }
        try client.send(.pubcomp(1))
        try client.acknowledge(2, .exactlyOnce)
        try client.expectNothing()
        try client.finish()
        client = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try client.expectNothing()
        // New identifiers for new messages.
        try publisher.publish(topic, "3", qos: .exactlyOnce)
        try client.expect(.publish(topic, "3", qos: .exactlyOnce, 3))
    }

    @Test(
        "MQTT-4.3.3-2: until PUBREL an identifier is the same message, afterwards a new one",
        arguments: Transport.all)
    func exactlyOnceReceiver(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber("watcher", to: topic, .exactlyOnce)
        let client = try broker.connect("client")
        var number: UInt16 = 1
        for isDuplicate in [false, true] {
            // Every repetition is acknowledged and none delivered, with DUP or without.
            try client.send(
                .publish(topic, "first", qos: .exactlyOnce, 5, isDuplicate: isDuplicate))
            try client.expect(.pubrec(5))
            for flag in [true, false, true] {
                try client.send(
                    .publish(topic, "again", qos: .exactlyOnce, 5, isDuplicate: flag))
                try client.expect(.pubrec(5))
            }
            // Another identifier means another message.
            try client.send(.publish(topic, "other", qos: .exactlyOnce, 6))
            try client.expect(.pubrec(6))
            try client.send(.pubrel(6))
            try client.expect(.pubcomp(6))
            try client.send(.pubrel(5))
            try client.expect(.pubcomp(5))
            // A PUBREL whose PUBCOMP was lost is acknowledged again.
            try client.send(.pubrel(5))
            try client.expect(.pubcomp(5))
            try client.expectNothing()
            for payload in ["first", "other"] {
                try watcher.expect(
                    .publish(
                        topic, payload, qos: .exactlyOnce, try #require(PacketIdentifier(number))))
                number += 1
            }
            try watcher.expectNothing()
        }
    }

    @Test(
        "MQTT-4.3.3-2: a message that is received and not released is known after a reconnect",
        arguments: Transport.all)
    func exactlyOnceAcrossReconnect(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber("watcher", to: topic, .exactlyOnce)
        let client = try broker.connect("client", cleanSession: false)
        try client.send(.publish(topic, "x", qos: .exactlyOnce, 5))
        try client.expect(.pubrec(5))
        try watcher.expect(.publish(topic, "x", qos: .exactlyOnce, 1))
        try client.finish()
        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        for isDuplicate in [true, false] {
            try again.send(.publish(topic, "x", qos: .exactlyOnce, 5, isDuplicate: isDuplicate))
            try again.expect(.pubrec(5))
        }
        try again.finish()
        // Released after another reconnect; then the identifier means a new message.
        let last = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try last.send(.pubrel(5))
        try last.expect(.pubcomp(5))
        try watcher.expectNothing()
        try last.send(.publish(topic, "y", qos: .exactlyOnce, 5, isDuplicate: true))
        try last.expect(.pubrec(5))
        try watcher.expect(.publish(topic, "y", qos: .exactlyOnce, 2))
        try watcher.expectNothing()
    }
}
