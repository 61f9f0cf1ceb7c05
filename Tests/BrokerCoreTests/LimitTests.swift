import BrokerCore
import BrokerFeatures
import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

extension ShardLink {
    /// The number of times a limit was met.
    func reached(_ limit: Limit) -> UInt64 { shard.counters.limits[limit] }
}

/// Each limit allows what is exactly at it, and stops what is beyond.
@Suite("Limits of connections")
struct LimitTests {
    // MARK: Time

    /// Deadlines are met not early, and at most 250 ms late.
    private static let slack: UInt64 = 250

    @Test(
        "[MQTT-3.1.2-24] one and a half keep alives, counted from the last whole packet, within 250 ms",
        arguments: [1, 2, 7, 60, 600, 65_535] as [UInt64])
    func keepAlive(seconds: UInt64) throws {
        let link = ShardLink()
        let client = try link.connect("client") { $0.keepAlive = UInt16(seconds) }
        let limit = seconds * 1_500
        for _ in 0..<3 {
            link.advance(milliseconds: limit - 1)
            try link.send(client, .pingreq)
        }
        link.advance(milliseconds: limit - 1)
        #expect(!link.closed.contains(client))
        link.advance(milliseconds: 1 + Self.slack)
        #expect(link.closeReasons == [.keepAlive])
    }

    @Test("[MQTT-3.1.2-24] a packet that comes byte by byte keeps nothing alive until it is whole")
    func trickle() throws {
        let publish = try PacketContent.publish("a", String(repeating: "x", count: 200)).encoded()
        let link = ShardLink()
        let client = try link.connect("client") { $0.keepAlive = 2 }
        for byte in publish where !link.closed.contains(client) {
            link.send(client, [byte])
            link.advance(milliseconds: 100)
        }
        #expect(link.closeReasons == [.keepAlive])

        // Only the last byte completes a packet.
        let patient = try link.connect("patient") { $0.keepAlive = 2 }
        link.send(patient, Array(publish.dropLast()))
        link.advance(milliseconds: 2_900)
        link.send(patient, publish.suffix(1))
        link.advance(milliseconds: 2_900)
        #expect(!link.closed.contains(patient))
    }

    @Test("limits.max_keep_alive applies to clients that ask for more or for none")
    func maxKeepAlive() throws {
        for (asked, seconds) in [(0, 30), (31, 30), (30, 30), (10, 10)] as [(UInt16, UInt64)] {
            let link = ShardLink({ $0.maxKeepAlive = .seconds(30) })
            let client = try link.connect("client") { $0.keepAlive = asked }
            #expect(link.reached(.maxKeepAlive) == (asked == 0 || asked > 30 ? 1 : 0))
            link.advance(milliseconds: seconds * 1_500 - 1)
            #expect(!link.closed.contains(client))
            link.advance(milliseconds: 1 + Self.slack)
            #expect(link.closeReasons == [.keepAlive])
        }
    }

    @Test("limits.connect_timeout counts to the whole CONNECT, and not from its bytes")
    func connectTimeout() throws {
        let link = ShardLink({ $0.connectTimeout = .seconds(2) })
        let late = link.open()
        let punctual = link.open()
        let connect = try PacketContent.connect(PacketContent.Connect(clientID: "c"))
            .encoded()
        for byte in connect.dropLast() {
            link.send(late, [byte])
            link.send(punctual, [byte])
            link.advance(milliseconds: 100)
        }
        link.advance(milliseconds: 1_999 - UInt64(connect.count - 1) * 100)
        link.send(punctual, connect.suffix(1))
        #expect(try link.take(punctual) == [.connack(.accepted(sessionPresent: false))])
        #expect(!link.closed.contains(late))
        link.advance(milliseconds: 1 + Self.slack)
        #expect(link.closeReasons == [.connectTimeout])
        #expect(link.reached(.connectTimeout) == 1)
        link.advance(milliseconds: 60_000)
        #expect(!link.closed.contains(punctual), "its keep alive is 0")
    }

    // MARK: Packets

    @Test("limits.max_packet and limits.max_connect_packet count header and payload")
    func packetSizes() throws {
        let link = ShardLink({
            $0.maxConnectPacketBytes = 64
            $0.maxPacketBytes = 300
        })
        func connect(bytes: Int) throws -> [UInt8] {
            // Fixed header, protocol name, level, flags, keep alive, length of the identifier.
            let name = String(repeating: "c", count: bytes - 2 - 6 - 1 - 1 - 2 - 2)
            let packet = try PacketContent.connect(PacketContent.Connect(clientID: name))
                .encoded()
            #expect(packet.count == bytes)
            return packet
        }
        let client = link.open()
        link.send(client, try connect(bytes: 64))
        #expect(try link.take(client) == [.connack(.accepted(sessionPresent: false))])
        let tooLarge = link.open()
        // The fixed header is enough to reject it.
        link.send(tooLarge, Array(try connect(bytes: 65).prefix(2)))
        #expect(link.closed == [tooLarge])
        #expect(link.reached(.maxConnectPacket) == 1)

        func publish(bytes: Int) throws -> [UInt8] {
            let packet = try PacketContent.publish("a", String(repeating: "x", count: bytes - 6))
                .encoded()
            #expect(packet.count == bytes)
            return packet
        }
        link.send(client, try publish(bytes: 300))
        try link.send(client, .pingreq)
        #expect(try link.take(client) == [.pingresp])
        link.send(client, Array(try publish(bytes: 301).prefix(3)))
        #expect(link.closed == [tooLarge, client])
        #expect(link.reached(.maxPacket) == 1)
    }

    @Test("limits.max_topic_levels binds topic names, filters and wills", arguments: [3, 4])
    func topicLevels(levels: Int) throws {
        let isFine = levels == 3
        let link = ShardLink({ $0.maxTopicLevels = 3 })
        let topic = Array(repeating: "a", count: levels).joined(separator: "/")
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("#", .atMostOnce))
        _ = try link.take(watcher)
        let client = try link.connect("client") {
            $0.will = PacketContent.Will(topic: topic, message: [1])
        }
        for filter in [topic, "\(topic.dropLast())#", "\(topic.dropLast())+", "$share/g/\(topic)"] {
            try link.send(client, .subscribe(filter, .atLeastOnce))
            // The levels of `$share/g/` are included.
            let code: UInt8 = isFine && !filter.hasPrefix("$") ? 1 : 0x80
            #expect(try link.take(client) == [.suback(1, [code])], "\(filter)")
        }
        try link.send(client, .publish(topic, "x"))
        #expect(link.closed.contains(client) != isFine)
        link.lose(client)
        #expect(try link.take(watcher).count == (isFine ? 2 : 0), "the message and the will")
        #expect(link.reached(.maxTopicLevels) == (isFine ? 1 : 6))
    }

    // MARK: What is not acknowledged

    @Test("limits.max_in_flight: exactly so many leave, and each PUBACK lets one more go")
    func maxInFlight() throws {
        let link = ShardLink({ $0.maxInFlight = 3 })
        let client = try link.subscriber("client", to: "a", .exactlyOnce, cleanSession: true)
        let publisher = try link.connect("publisher")
        try link.publish(["1", "2", "3"], to: "a", from: publisher)
        #expect(link.reached(.maxInFlight) == 0)
        try link.publish(["4"], to: "a", qos: .exactlyOnce, from: publisher)
        #expect(try link.takePayloads(client) == ["1", "2", "3"])
        #expect(link.reached(.maxInFlight) > 0)
        // QoS 0 takes no place in the window.
        try link.send(publisher, .publish("a", "unsure"))
        #expect(try link.takePayloads(client) == ["unsure"])
        try link.send(client, .puback(2))
        #expect(try link.takePayloads(client) == ["4"])
        try link.publish(["5"], to: "a", from: publisher)
        // PUBREC frees no place; only PUBCOMP ends the exchange.
        try link.send(client, .pubrec(4))
        #expect(try link.take(client) == [.pubrel(4)])
        try link.send(client, .pubcomp(4))
        #expect(try link.takePayloads(client) == ["5"])
    }

    @Test(
        "limits.max_inbound_qos2: exactly so many may wait for PUBREL, on any number of connections"
    )
    func maxInboundQoS2() throws {
        let link = ShardLink({ $0.maxInboundQoS2 = 3 })
        var client = try link.connect("client", cleanSession: false)
        for number in 1...3 {
            try link.send(client, .publish("a", "x", qos: .exactlyOnce, .init(number: number)))
        }
        // A repetition is not counted again.
        try link.send(client, .publish("a", "x", qos: .exactlyOnce, 2, isDuplicate: true))
        try link.send(client, .pubrel(1), .publish("a", "x", qos: .exactlyOnce, 4))
        #expect(try link.take(client).count == 6)
        link.lose(client)
        client = try link.connect("client", cleanSession: false)
        #expect(link.reached(.maxInboundQoS2) == 0)
        try link.send(client, .publish("a", "x", qos: .exactlyOnce, 5))
        #expect(link.closed.contains(client))
        #expect(link.closeReasons.last == .tooManyInboundQoS2)
        #expect(link.reached(.maxInboundQoS2) == 1)
    }

    @Test(
        "a publisher is paused at limits.max_unacknowledged_publishes or _bytes, and not one PUBLISH before",
        arguments: [false, true])
    func pause(byBytes: Bool) throws {
        let publish = try PacketContent.publish("a", "x", qos: .atLeastOnce, 1, retain: true)
            .encoded()
        let link = ShardLink(
            {
                if byBytes {
                    $0.maxUnacknowledgedPublishBytes = 4 * publish.count
                } else {
                    $0.maxUnacknowledgedPublishes = 4
                }
            }, isImmediate: false)
        let client = try link.connect("client") { $0.keepAlive = 1 }
        for number in 1...3 {
            try link.send(
                client, .publish("a", "x", qos: .atLeastOnce, .init(number: number), retain: true))
        }
        var isHeld = link.shard.holdsInput(client)
        #expect(!isHeld)
        try link.send(client, .publish("a", "x", qos: .atLeastOnce, 4, retain: true))
        isHeld = link.shard.holdsInput(client)
        #expect(isHeld)
        #expect(link.reached(byBytes ? .maxUnacknowledgedBytes : .maxUnacknowledgedPublishes) == 1)
        // Further packets wait, and the keep alive is suspended.
        try link.send(client, .publish("a", "x", qos: .atLeastOnce, 5, retain: true), .pingreq)
        link.advance(milliseconds: 60_000)
        #expect(link.closeReasons.isEmpty && link.store.pending.count == 4)
        // Reading resumes at half of the limit.
        link.store.complete(link.store.pending[0])
        link.turn()
        #expect(link.store.pending.count == 3)
        link.store.complete(link.store.pending[0])
        link.turn()
        isHeld = link.shard.holdsInput(client)
        #expect(!isHeld)
        #expect(try link.take(client) == [.puback(1), .puback(2), .pingresp])
        link.commitAll()
        #expect(try link.take(client) == [.puback(3), .puback(4), .puback(5)])
    }

    @Test(
        "a paused publisher that also receives is no deadlock: its PUBACKs count when it is read again"
    )
    func pausedReceiver() throws {
        let link = ShardLink(
            {
                $0.maxUnacknowledgedPublishes = 2
                $0.maxInFlight = 1
            }, isImmediate: false)
        let client = try link.subscriber("client", to: "a", .atLeastOnce)
        var payloads: [String] = []
        for number in 1...50 {
            try link.send(
                client, .publish("a", "\(number)", qos: .atLeastOnce, .init(number: number)))
        }
        for _ in 0..<200 {
            link.commitAll()
            for packet in try link.take(client) {
                guard case .publish(let publish) = packet else { continue }
                payloads.append(String(decoding: publish.payload, as: UTF8.self))
                if let identifier = publish.packetIdentifier {
                    try link.send(client, .puback(identifier))
                }
            }
        }
        #expect(payloads == (1...50).map { "\($0)" })
        let figures = link.shard.figures
        #expect((figures.publishersPaused, figures.queued, figures.inFlight) == (0, 0, 0))
    }

    @Test("acknowledgements of nothing cost nothing, however many come")
    func endlessAcknowledgements() throws {
        let link = ShardLink(isImmediate: false)
        let peer = try link.connect("peer", cleanSession: false)
        for type: UInt8 in [0x40, 0x70] {
            let flood = [UInt8]((0..<100_000).flatMap { _ in [type, 0x02, 0x00, 0x09] })
            link.send(peer, flood)
            #expect(link.unreadCount(of: peer) == 0, "reading stopped")
            let isEmpty = link.shard.withOutput(of: peer) { $0.isEmpty }
            #expect(isEmpty && link.store.pending.isEmpty)
        }
        #expect(link.closeReasons.isEmpty)
    }

    @Test("limits.output_bytes: QoS 0 is dropped, QoS 1 waits until the client reads")
    func outputBytes() throws {
        let link = ShardLink({ $0.outputBytes = 1_000 })
        let client = try link.subscriber("client", to: "#", .atLeastOnce, cleanSession: true)
        let publisher = try link.connect("publisher")
        func receive(_ packet: PacketContent) throws {
            let bytes = try packet.encoded()
            _ = bytes.withUnsafeBytes { link.shard.receive(publisher, $0) }
        }
        // Without a turn nothing is sent, as with a full socket: ten of 100 bytes fill the output.
        let filler = String(repeating: "x", count: 97 - 4)
        for _ in 0..<10 { try receive(.publish("sure", filler)) }
        #expect(link.reached(.outputBytes) == 0)
        try receive(.publish("unsure", "x"))
        #expect(link.reached(.outputBytes) == 1)
        #expect(link.shard.counters.dropped[.slowReader] == 1)
        try receive(.publish("sure", "1", qos: .atLeastOnce, 1))
        try receive(.publish("sure", "2", qos: .atLeastOnce, 2))
        #expect(link.reached(.outputBytes) == 2, "once for each time, not for each message")
        link.turn()
        link.turn()
        #expect(try link.takePayloads(client) == Array(repeating: filler, count: 10) + ["1", "2"])
    }
}
