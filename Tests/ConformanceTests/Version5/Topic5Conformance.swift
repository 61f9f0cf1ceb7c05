import HermesTesting
import Testing

@Suite("MQTT 5.0, 4.7 and 4.8: topics and shared subscriptions")
struct Topic5Conformance {
    @Test(
        "MQTT5-4.7.1-1, MQTT5-4.7.1-2, MQTT5-4.7.3-1, MQTT5-4.8.2-1, MQTT5-4.8.2-2: filters of a wrong form are refused one by one",
        arguments: Transport.all)
    func wrongFilters(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let wrong = [
            "", "a#", "#a", "a/#/b", "##", "+a", "a+", "a/+b/c", "++", "$share/",
            "$share/g", "$share/g/", "$share//a", "$share/+/a", "$share/#/a", "$share/g#/a",
            "$share/g/a#",
        ]
        let client = try broker.connect5("client")
        for filter in wrong {
            try client.send5(.subscribe(1, [filter: 1]))
            try client.expect5(.suback(1, [0x8F]))
        }
        try client.expectNothing()
    }

    @Test(
        "MQTT5-4.7.2-1: filters that begin with a wildcard match no topic that begins with $",
        arguments: Transport.all)
    func dollar(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let name = "$\(broker.prefix)/a"
        let client = try broker.connect5("client")
        try client.subscribe5("+/a", 0)
        let named = try broker.subscriber5("named", to: "$\(broker.prefix)/#", 0)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(name, "x")
        try named.expect5(.publish(name, "x"))
        #expect(try !client.takeAll5().contains { $0.header.dropFirst(2) == Array(name.utf8)[...] })
    }

    @Test(
        "MQTT5-4.7.3-3: topics and filters of 65,535 bytes", arguments: Transport.all)
    func longest(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let name = broker.topic("a")
        let topic = name + String(repeating: "x", count: 65_535 - name.utf8.count)
        let client = try broker.subscriber5("client", to: topic, 1)
        try client.publish5(topic, "x", qos: 1)
        try client.expect5(.publish(topic, "x", qos: 1, 1))
        try client.unsubscribe5(topic)
        try client.expectNothing()
    }

    @Test(
        "MQTT5-4.7.3-4: characters compare as they are, and empty levels count",
        arguments: Transport.all)
    func compares(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let composed = broker.topic("\u{E9}")
        let decomposed = broker.topic("e\u{301}")
        let client = try broker.connect5("client")
        for filter in [composed, broker.topic("A"), broker.topic("a/"), broker.topic(" ")] {
            try client.subscribe5(filter, 0)
        }
        for name in [decomposed, broker.topic("a"), broker.topic(""), broker.topic("a//")] {
            try client.publish5(name, "no")
        }
        try client.expectNothing()
        try client.publish5(composed, "yes")
        try client.expect5(.publish(composed, "yes"))
    }

    // MARK: Shared subscriptions

    @Test(
        "MQTT5-4.8.2-3: each member of a group is served at its own granted QoS, and each message by one",
        arguments: Transport.all)
    func ownQoS(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let filter = "$share/g/\(topic)"
        let members = try (UInt8(0)...2).map {
            try broker.subscriber5("member\($0)", to: filter, $0)
        }
        let outside = try broker.subscriber5("outside", to: topic, 0)
        let publisher = try broker.connect5("publisher")
        for number in 0..<12 { try publisher.publish5(topic, "\(number)", qos: 2) }
        var payloads: [[UInt8]] = []
        for (qos, member) in members.enumerated() {
            let packets = try member.takeAll5()
            #expect(packets.allSatisfy { $0.first == 0x30 | UInt8(qos) << 1 })
            payloads += packets.map(\.payload)
        }
        #expect(payloads.count == 12 && Set(payloads).count == 12)
        #expect(try outside.takeAll5().count == 12)
    }

    @Test(
        "MQTT5-4.8.2-6: a message that a member refuses goes to nobody else",
        arguments: Transport.all, [UInt8(1), 2])
    func refusedByAMember(transport: Transport, qos: UInt8) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let members = try (0..<2).map {
            try broker.subscriber5("m\($0)", to: "$share/g/\(topic)", 2, expiry: 60)
        }
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", qos: qos)
        let got = try members.map { try $0.takeAll5() }
        let index = try #require(got.firstIndex { !$0.isEmpty })
        #expect(got[1 - index].isEmpty && got[index].count == 1)
        try members[index].send5(qos == 1 ? .puback(1, 0x83) : .pubrec(1, 0x83))
        try members[index].expectNothing()
        try members[index].disconnect5(0, [.sessionExpiry(0)])
        try members[1 - index].expectNothing()
    }

    @Test(
        "MQTT5-4.8.2-4, MQTT5-4.8.2-5: a QoS 2 delivery that has begun is finished with its member, and goes to nobody else if that session ends",
        arguments: Transport.all)
    func begunDelivery(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let filter = "$share/g/\(topic)"
        let member = try broker.subscriber5("member", to: filter, 2, expiry: 60)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "received", qos: 2)
        try publisher.publish5(topic, "sent", qos: 2)
        try member.expect5(
            .publish(topic, "received", qos: 2, 1), .publish(topic, "sent", qos: 2, 2))
        try member.send5(.pubrec(1))
        try member.expect5(.pubrel(1))
        let other = try broker.subscriber5("other", to: filter, 2)
        try member.finish()
        try other.expectNothing()
        let again = try broker.connect5(
            "member", cleanStart: false, expiry: 60, sessionPresent: true)
        try again.expect5(
            .pubrel(1), .publish(topic, "sent", qos: 2, 2, isDuplicate: true))
        try again.send5(.pubcomp(1))
        try again.disconnect5(0, [.sessionExpiry(0)])
        try other.expectNothing()
    }

    @Test(
        "Trap 51: a shared subscription brings no retained messages, whatever its Retain Handling",
        arguments: Transport.all)
    func sharedRetained(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", retain: true)
        for options in [UInt8(0x00), 0x10, 0x08] {
            let member = try broker.subscriber5("member", to: "$share/g/\(topic)", options)
            try member.expectNothing()
        }
    }

    @Test(
        "Trap 54: what a member with a full window has not acknowledged goes to another when its session ends, and nothing is lost",
        arguments: Transport.all)
    func fullMember(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let filter = "$share/g/\(topic)"
        let full = try broker.connect5("full", [.receiveMaximum(1)])
        try full.subscribe5(filter, 1)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "0", qos: 1)
        try full.expect5(.publish(topic, "0", qos: 1, 1))
        let open = try broker.subscriber5("open", to: filter, 1)
        for number in 1...6 { try publisher.publish5(topic, "\(number)", qos: 1) }
        try full.expectNothing()
        func take() throws -> [[UInt8]] {
            let packets = try open.takeAll5()
            for packet in packets { try open.send5(.puback(packet.messageIdentifier)) }
            return packets.map(\.payload)
        }
        let early = try take()
        #expect(early.count >= 3, "the full member does not get more than its turn")
        try full.finish()
        let late = try take()
        #expect(Set(early + late) == Set((0...6).map { Array("\($0)".utf8) }))
        #expect((early + late).count == 7)
        try open.expectNothing()
    }
}
