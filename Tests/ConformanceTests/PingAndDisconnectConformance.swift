import HermesTesting
import MQTTCodec
import Testing

@Suite("3.6 PUBREL, 3.12 PINGREQ and 3.14 DISCONNECT")
struct PingAndDisconnectConformance {
    @Test(
        "MQTT-3.6.1-1: flags of PUBREL other than 0010 close the connection",
        arguments: Transport.all)
    func flagsOfPubrel(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client", cleanSession: false)
        try client.send(.publish(broker.topic("a"), "x", qos: .exactlyOnce, 1))
        try client.expect(.pubrec(1))
        try client.finish()
        for flags in UInt8(0)..<16 where flags != 2 {
            let violator = try broker.connect("client", cleanSession: false, sessionPresent: true)
            try violator.send(bytes: [0x60 | flags, 0x02, 0x00, 0x01])
            try violator.expectClosed()
        }
        // None of them released the message.
        let watcher = try broker.subscriber("watcher", to: broker.topic("a"), .atMostOnce)
        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try again.send(.publish(broker.topic("a"), "x", qos: .exactlyOnce, 1, isDuplicate: true))
        try again.expect(.pubrec(1))
        try watcher.expectNothing()
        // The broker's own PUBREL has flags 0010, also when re-sent.
        try again.send(wire: "62 02 00 01")
        try again.expectBytes([0x70, 0x02, 0x00, 0x01])
        try again.subscribe(broker.topic("a"), .exactlyOnce)
        try again.publish(broker.topic("a"), "y", qos: .exactlyOnce)
        try again.expect(.publish(broker.topic("a"), "y", qos: .exactlyOnce, 1))
        try again.send(.pubrec(1))
        try again.expectBytes([0x62, 0x02, 0x00, 0x01])
        try again.finish()
        let last = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try last.expectBytes([0x62, 0x02, 0x00, 0x01])
    }

    @Test(
        "MQTT-3.12.4-1: every PINGREQ is answered with one PINGRESP", arguments: Transport.all)
    func ping(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        try client.send(wire: "C0 00")
        try client.expectBytes([0xD0, 0x00])
        try client.send(wire: "C0 00 C0 00 C0 00")
        try client.expectBytes([0xD0, 0x00, 0xD0, 0x00, 0xD0, 0x00])
        try client.expectNothing()
    }

    @Test(
        "MQTT-3.14.1-1: flags of DISCONNECT other than 0 are a violation, so the will is published",
        arguments: Transport.all)
    func flagsOfDisconnect(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber("watcher", to: topic, .atMostOnce)
        for flags in UInt8(1)..<16 {
            let client = try broker.connect(
                "client", will: PacketContent.Will(topic: topic, message: [0x30 + flags]))
            try client.send(bytes: [0xE0 | flags, 0x00])
            try client.expectClosed()
            try watcher.expectBytes(
                RawPacket.publish(topic: Array(topic.utf8), payload: [0x30 + flags]))
        }
        try watcher.expectNothing()
    }

    @Test(
        "MQTT-3.14.4-2: packets after DISCONNECT have no effect", arguments: Transport.all)
    func behindDisconnect(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber("watcher", to: topic, .exactlyOnce)
        let client = try broker.connect("client", cleanSession: false)
        try client.send(
            .publish(topic, "before"), .disconnect, .publish(topic, "behind"),
            .publish(topic, "behind", qos: .atLeastOnce, 1, retain: true),
            .subscribe(topic, .atLeastOnce))
        try client.expectClosed()
        try watcher.expect(.publish(topic, "before"))
        try watcher.expectNothing()
        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try again.publish(topic, "x", qos: .atLeastOnce)
        try again.expectNothing()
    }

    @Test(
        "MQTT-3.14.4-3: DISCONNECT discards the will, of every QoS and with will retain",
        arguments: Transport.all, QoS.allCases)
    func discardsWill(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber("watcher", to: topic, .exactlyOnce)
        for retain in [false, true] {
            for cleanSession in [true, false] {
                let client = try broker.connect(
                    "client\(retain)", cleanSession: cleanSession,
                    will: PacketContent.Will(
                        topic: topic, message: [1], qos: qos, retain: retain))
                try client.disconnect()
                try watcher.expectNothing()
            }
        }
        let late = try broker.subscriber("late", to: topic, .exactlyOnce)
        try late.expectNothing()
    }
}
