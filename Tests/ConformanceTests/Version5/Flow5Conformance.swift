import HermesTesting
import Testing

@Suite("MQTT 5.0, 4.9 and 3.1.2.11: Receive Maximum and Maximum Packet Size")
struct Flow5Conformance {
    @Test(
        "MQTT5-3.3.4-9, MQTT5-4.9.0-1, MQTT5-4.9.0-2: no more unacknowledged messages leave than the client's Receive Maximum",
        arguments: Transport.all, [UInt16(1), 3])
    func window(transport: Transport, maximum: UInt16) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let subscriber = try broker.connect5("subscriber", [.receiveMaximum(maximum)])
        try subscriber.subscribe5(topic, 2)
        let publisher = try broker.connect5("publisher")
        func message(_ number: UInt16) -> Packet5 {
            .publish(topic, "\(number)", qos: number % 2 == 0 ? 2 : 1, number)
        }
        for number in 1...maximum + 3 {
            try publisher.publish5(topic, "\(number)", qos: number % 2 == 0 ? 2 : 1)
        }
        try subscriber.expect5((1...maximum).map(message))
        try subscriber.expectNothing()
        // Each final acknowledgement makes room for one; PUBREC alone makes none.
        for number in 1...UInt16(3) {
            if number % 2 == 0 {
                try subscriber.send5(.pubrec(number))
                try subscriber.expect5(.pubrel(number))
                try subscriber.expectNothing()
                try subscriber.send5(.pubcomp(number))
            } else {
                try subscriber.send5(.puback(number))
            }
            let packet = try #require(try subscriber.next5())
            #expect(packet.payload == Array("\(maximum + number)".utf8))
            try subscriber.expectNothing()
            guard maximum == 1 else { continue }
            #expect(packet.header.last != 0)
        }
    }

    @Test(
        "MQTT5-3.3.4-10, MQTT5-4.9.0-3: at a full window QoS 0, acknowledgements and answers do not wait",
        arguments: Transport.all)
    func othersDoNotWait(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.connect5("client", [.receiveMaximum(1)])
        try client.subscribe5(topic, 2)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "one", qos: 1)
        try publisher.publish5(topic, "two", qos: 1)
        try client.expect5(.publish(topic, "one", qos: 1, 1))
        try publisher.publish5(topic, "three")
        try client.expect5(.publish(topic, "three"))
        try client.send5(.pingreq)
        try client.expect5(.pingresp)
        let own = broker.topic("own")
        try client.send5(.publish(own, "x", qos: 1, 50))
        try client.expect5(.puback(50))
        try client.send5(.publish(own, "x", qos: 2, 51))
        try client.expect5(.pubrec(51))
        try client.send5(.pubrel(51))
        try client.expect5(.pubcomp(51))
        try client.subscribe5(own, 0)
        try client.unsubscribe5(own)
        try client.expectNothing()
        try client.send5(.puback(1))
        try client.expect5(.publish(topic, "two", qos: 1, 2))
        try client.expectNothing()
    }

    @Test(
        "MQTT5-4.9.0-1, trap 34: each connection begins with its own full quota, also on a resume",
        arguments: Transport.all)
    func quotaOfAConnection(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let first = try broker.connect5("client", expiry: 60, [.receiveMaximum(2)])
        try first.subscribe5(topic, 1)
        let publisher = try broker.connect5("publisher")
        for number in 1...6 { try publisher.publish5(topic, "\(number)", qos: 1) }
        func message(_ number: UInt16, isDuplicate: Bool = false) -> Packet5 {
            .publish(topic, "\(number)", qos: 1, number, isDuplicate: isDuplicate)
        }
        try first.expect5(message(1), message(2))
        // A take-over with a larger one.
        let second = try broker.connect5(
            "client", cleanStart: false, expiry: 60, [.receiveMaximum(4)], sessionPresent: true)
        try second.expect5(
            message(1, isDuplicate: true), message(2, isDuplicate: true), message(3), message(4))
        try second.expectNothing()
        try second.send5(.puback(1), .puback(2))
        try second.expect5(message(5), message(6))
        try second.finish()
        // A resume with a smaller one than is in flight.
        let third = try broker.connect5(
            "client", cleanStart: false, expiry: 60, [.receiveMaximum(1)], sessionPresent: true)
        for number in UInt16(3)...6 {
            try third.expect5(message(number, isDuplicate: true))
            try third.expectNothing()
            try third.send5(.puback(number))
        }
        try third.expectNothing()
    }

    @Test(
        "MQTT5-3.3.4-7, MQTT5-4.9.0-2, trap 32: more unreleased QoS 2 messages than the announced Receive Maximum end with 0x93",
        arguments: Transport.all)
    func receiveMaximumOfTheBroker(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect5("client")
        let maximum = UInt16(try #require(client.connack?.property(0x21)).number)
        for number in 1...maximum {
            try client.send5(.publish(broker.topic("a"), "", qos: 2, number))
        }
        try client.expect5((1...maximum).map { .pubrec($0) })
        // A repeated one and QoS 0 are no further ones.
        try client.send5(
            .publish(broker.topic("a"), "", qos: 2, 1, isDuplicate: true),
            .publish(broker.topic("a"), ""))
        try client.expect5(.pubrec(1))
        try client.expectNothing()
        try client.send5(.publish(broker.topic("a"), "", qos: 2, maximum + 1))
        try client.expectEnd5(0x93)
    }

    @Test(
        "MQTT5-3.1.2-24, MQTT5-3.1.2-25, trap 28, trap 29: a message larger than the client's Maximum Packet Size is dropped and the next one follows; one of exactly that size is sent",
        arguments: Transport.all, [UInt8(0), 1, 2])
    func maximumPacketSize(transport: Transport, qos: UInt8) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let size = 100
        let client = try broker.connect5(
            "client", expiry: 60, [.packetSize(UInt32(size)), .receiveMaximum(1)])
        try client.subscribe5(topic, 2)
        let publisher = try broker.connect5("publisher")
        func message(_ size: Int, _ identifier: UInt16) -> Packet5 {
            let empty = Packet5.publish(topic, "", qos: qos, identifier).bytes.count
            return .publish(
                topic, String(repeating: "x", count: size - empty), qos: qos, identifier)
        }
        let fits = message(size, 1)
        #expect(fits.bytes.count == size)
        func publish(_ size: Int) throws {
            let payload = message(size, 1).payload
            try publisher.publish5(topic, String(decoding: payload, as: UTF8.self), qos: qos)
        }
        for size in [101, 100, 150] { try publish(size) }
        // A message that was dropped may have used up a packet identifier.
        let first = try #require(try client.next5())
        #expect(first.bytes.count == size && first.payload == fits.payload)
        try client.expectNothing()
        // The window is not taken by what was dropped.
        if qos == 1 { try client.send5(.puback(first.messageIdentifier)) }
        if qos == 2 {
            try client.send5(.pubrec(first.messageIdentifier))
            try client.expect5(.pubrel(first.messageIdentifier))
            try client.send5(.pubcomp(first.messageIdentifier))
        }
        try publish(101)
        try publish(99)
        let next = try #require(try client.next5())
        #expect(next.bytes.count == 99)
        try client.expectNothing()
        guard qos > 0 else { return }
        // What waits for an offline client counts too, and the size is that of the new connection.
        try client.finish()
        for size in [101, 60, 101] { try publish(size) }
        let again = try broker.connect5(
            "client", cleanStart: false, expiry: 60, [.packetSize(UInt32(size))],
            sessionPresent: true)
        func sizes(_ client: Client, _ count: Int) throws -> [Int] {
            let packets = try (0..<count).map { _ in try #require(try client.next5()) }
            try client.expectNothing()
            #expect(packets.allSatisfy { $0.type == 3 })
            return packets.map(\.bytes.count)
        }
        #expect(try sizes(again, 2) == [99, 60])
        let wide = try broker.connect5(
            "client", cleanStart: false, expiry: 60, sessionPresent: true)
        #expect(try sizes(wide, 2) == [99, 60])
        try publish(101)
        #expect(try sizes(wide, 1) == [101])
    }

    @Test(
        "MQTT5-3.1.2-24, trap 29: properties and the receiver's own Subscription Identifiers count for the size",
        arguments: Transport.all)
    func sizeWithProperties(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let properties: [Property5] = [.user("name", "value"), .contentType("x")]
        let whole = Packet5.publish(topic, "x", properties + [.subscription(200)])
        for (name, size) in [("fits", whole.bytes.count), ("small", whole.bytes.count - 1)] {
            let client = try broker.connect5(name, [.packetSize(UInt32(size))])
            try client.subscribe5(topic, 0, [.subscription(200)])
            let publisher = try broker.connect5("publisher")
            try publisher.publish5(topic, "x", properties)
            if name == "fits" { try client.expect5(whole) }
            try client.expectNothing()
        }
    }

    @Test(
        "MQTT5-3.4.2-2, MQTT5-3.4.2-3, MQTT5-3.5.2-2, MQTT5-3.5.2-3, MQTT5-3.6.2-2, MQTT5-3.6.2-3, MQTT5-3.7.2-2, MQTT5-3.7.2-3, MQTT5-3.9.2-1, MQTT5-3.9.2-2, MQTT5-3.11.2-1, MQTT5-3.11.2-2, MQTT5-3.14.2-3, MQTT5-3.14.2-4, trap 30: acknowledgements, answers and DISCONNECT keep to the client's size",
        arguments: Transport.all)
    func sizeOfAnswers(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for size in [UInt32(24), 32] {
            let client = try broker.connect5("client", [.packetSize(size)])
            let deep = broker.topic(String(repeating: "/", count: 200))
            try client.send5(
                .subscribe(1, ["a/#/b": 0]), .unsubscribe(2, ["a/#/b"]), .pubrel(3),
                .subscribe(4, [deep: 0]), .publish(broker.topic("a"), "", qos: 1, 5),
                .publish(broker.topic("a"), "", qos: 2, 6), .pubrec(7))
            var frames: [[UInt8]] = []
            while frames.count < 7, let frame = try client.nextFrame() { frames.append(frame) }
            #expect(
                Set(try frames.map { try Packet5(received: $0).plain })
                    == [
                        .suback(1, [0x8F]), .unsuback(2, [0x8F]), .pubcomp(3, 0x92),
                        .suback(4, [0x8F]), .puback(5), .pubrec(6), .pubrel(7, 0x92),
                    ])
            try client.send5(.publish("", "no topic"))
            let end = try #require(try client.nextFrame())
            #expect(try Packet5(received: end).code == 0x82)
            #expect((frames + [end]).allSatisfy { $0.count <= Int(size) })
            try client.expectClosed()
        }
    }

    @Test(
        "MQTT5-3.1.2-29, trap 63: with Request Problem Information 0, only CONNACK, PUBLISH and DISCONNECT may have Reason String and User Property",
        arguments: Transport.all)
    func requestProblemInformation(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.connect5("client", [.requestProblems(0)])
        let deep = broker.topic(String(repeating: "/", count: 200))
        try client.send5(
            .subscribe(1, ["a/#/b": 0, topic: 1]), .unsubscribe(2, ["a/#/b"]), .pubrel(3),
            .subscribe(4, [deep: 0]), .publish(topic, "", qos: 2, 6, [.user("n", "v")]),
            .pubrec(77))
        var packets: [Packet5] = []
        while packets.count < 7, let packet = try client.next5() { packets.append(packet) }
        #expect(packets.count == 7)
        for packet in packets {
            if packet.type == 3 {
                #expect(packet.properties == [.user("n", "v")])
            } else {
                #expect(packet.properties.isEmpty, "\(packet)")
            }
        }
        try client.expectNothing()
    }
}
