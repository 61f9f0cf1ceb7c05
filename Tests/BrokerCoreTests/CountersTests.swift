import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("Counters")
struct CountersTests {
    /// The test's own counts of what clients received.
    private struct Seen: Equatable {
        var packetsToBroker: UInt64 = 0
        var packets: UInt64 = 0
        var publishes: [QoS: UInt64] = [.atMostOnce: 0, .atLeastOnce: 0, .exactlyOnce: 0]
        var bytes: UInt64 = 0
        var sent: [QoS: UInt64] = [.atMostOnce: 0, .atLeastOnce: 0, .exactlyOnce: 0]
        var sentBytes: UInt64 = 0
    }

    @Test(
        "packets, publishes by QoS and payload bytes are those that clients send and get",
        arguments: UInt64(1)...8)
    func conservation(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let link = ShardLink({
            $0.maxInFlight = 3
            $0.queueMessages = 5
        })
        var seen = Seen()
        var clients: [Handle?] = [nil, nil, nil]
        for round in 0..<2_000 {
            let number = Int.random(in: 0..<clients.count, using: &generator)
            guard let client = clients[number] else {
                let handle = link.open()
                var connect = PacketContent.Connect(clientID: "client-\(number)")
                connect.cleanSession = number == 0
                try link.send(handle, .connect(connect))
                seen.packetsToBroker += 1
                clients[number] = handle
                continue
            }
            let packet = packet(round, &generator)
            if Int.random(in: 0..<40, using: &generator) == 0 {
                link.lose(client)
                try count(link, client, &seen)
                clients[number] = nil
                continue
            }
            try link.send(client, packet)
            seen.packetsToBroker += 1
            if case .publish(let publish) = packet {
                seen.sent[publish.delivery.qos, default: 0] += 1
                seen.sentBytes += UInt64(publish.payload.count)
            }
            try count(link, client, &seen)
            // By DISCONNECT, or by another acknowledgement than was due.
            if link.closed.contains(client) { clients[number] = nil }
        }
        for case let client? in clients { try count(link, client, &seen) }

        #expect(seen.packets > 1_000, "the test must see something")
        let figures = link.shard.figures
        #expect(figures.packetsReceived == seen.packetsToBroker)
        #expect(figures.packetsSent == seen.packets)
        #expect(figures.publishesReceived.atMostOnce == seen.sent[.atMostOnce])
        #expect(figures.publishesReceived.atLeastOnce == seen.sent[.atLeastOnce])
        #expect(figures.publishesReceived.exactlyOnce == seen.sent[.exactlyOnce])
        #expect(figures.publishesSent.atMostOnce == seen.publishes[.atMostOnce])
        #expect(figures.publishesSent.atLeastOnce == seen.publishes[.atLeastOnce])
        #expect(figures.publishesSent.exactlyOnce == seen.publishes[.exactlyOnce])
        #expect(figures.publishBytesReceived == seen.sentBytes)
        #expect(figures.publishBytesSent == seen.bytes)
        let closed = figures.connectionsClosed.reduce(0) { $0 + $1.value }
        #expect(closed == figures.connectionsOpened - UInt64(figures.connections))
        #expect(figures.connections == clients.count { $0 != nil })
    }

    private func packet(_ round: Int, _ generator: inout SplitMix64) -> PacketContent {
        let identifiers: [PacketIdentifier] = [1, 2, 3, 4]
        let identifier = identifiers.randomElement(using: &generator) ?? 1
        let topic = ["a", "b/c", "$SYS/x"].randomElement(using: &generator) ?? "a"
        let qualities: [QoS] = [.atMostOnce, .atLeastOnce, .exactlyOnce]
        let qos = qualities.randomElement(using: &generator) ?? .atMostOnce
        switch Int.random(in: 0..<60, using: &generator) {
        case 0..<24:
            return .publish(
                topic, String(repeating: "x", count: round % 50), qos: qos, identifier,
                retain: Int.random(in: 0..<5, using: &generator) == 0)
        case 24..<30: return .subscribe(["a", "#", "+/c"][round % 3], qos)
        case 30..<32: return .subscribe("$share/g/#", qos)
        case 32..<34: return .unsubscribe(identifier, [Array("#".utf8)])
        case 34..<42: return .puback(identifier)
        case 42..<48: return .pubrec(identifier)
        case 48..<52: return .pubcomp(identifier)
        case 52..<57: return .pubrel(identifier)
        case 57: return .disconnect
        default: return .pingreq
        }
    }

    private func count(_ link: ShardLink, _ client: Handle, _ seen: inout Seen) throws {
        for packet in try link.take(client) {
            seen.packets += 1
            guard case .publish(let publish) = packet else { continue }
            seen.publishes[publish.delivery.qos, default: 0] += 1
            seen.bytes += UInt64(publish.payload.count)
        }
    }

    @Test("the time from a message's arrival to its receiver's last acknowledgement is counted")
    func deliveryTimes() throws {
        let link = ShardLink()
        let phone = try link.connect("phone")
        let publisher = try link.connect("publisher")
        try link.send(phone, .subscribe("a/#", .exactlyOnce))
        for (qos, span) in [(QoS.atLeastOnce, UInt64(3)), (.exactlyOnce, 700)] {
            try link.send(publisher, .publish("a/b", "x", qos: qos, 1, retain: true))
            link.advance(milliseconds: span)
            let packets = try link.take(phone)
            for case .publish(let publish) in packets {
                switch publish.delivery {
                case .atMostOnce: break
                case .atLeastOnce(let identifier, _): try link.send(phone, .puback(identifier))
                case .exactlyOnce(let identifier, _):
                    try link.send(phone, .pubrec(identifier))
                    #expect(link.shard.figures.deliveriesExactlyOnce.count == 0)
                    link.advance(milliseconds: span)
                    try link.send(phone, .pubcomp(identifier))
                }
            }
        }
        var figures = link.shard.figures
        #expect(figures.deliveriesAtLeastOnce.count == 1)
        #expect(figures.deliveriesAtLeastOnce.seconds == 0.0035)
        #expect(figures.deliveriesExactlyOnce.count == 1)
        #expect(figures.deliveriesExactlyOnce.seconds == 1.4005)

        // A retained message may be as old as it likes.
        let late = try link.connect("late")
        try link.send(late, .subscribe("a/#", .atLeastOnce))
        for case .publish(let publish) in try link.take(late) {
            guard case .atLeastOnce(let identifier, _) = publish.delivery else { continue }
            try link.send(late, .puback(identifier))
        }
        figures = link.shard.figures
        #expect(figures.deliveriesAtLeastOnce.count == 1)
        #expect(figures.inFlight == 0)
    }

    @Test("acknowledgements are counted by what they waited, and deliveries from there")
    func acknowledgementTimes() throws {
        let link = ShardLink(isImmediate: false)
        let phone = try link.connect("phone", cleanSession: false)
        let publisher = try link.connect("publisher")
        try link.send(phone, .subscribe("a/#", .atLeastOnce))
        link.store.completeAll()
        link.turn()
        _ = try link.take(phone)
        let before = link.shard.figures.acknowledgements
        for identifier: PacketIdentifier in [1, 2, 3] {
            try link.send(
                publisher, .publish("a/b", "x", qos: .atLeastOnce, identifier, retain: false))
        }
        // The commit takes 20 ms, the receiver another 5.
        link.store.completeAll()
        link.advance(milliseconds: 20)
        #expect(try link.take(publisher).count == 3)
        var figures = link.shard.figures
        #expect(figures.acknowledgements.count == before.count + 3)
        #expect(abs(figures.acknowledgements.seconds - before.seconds - 0.060) < 1e-9)
        let packets = try link.take(phone)
        link.advance(milliseconds: 5)
        for case .publish(let publish) in packets {
            guard case .atLeastOnce(let identifier, _) = publish.delivery else { continue }
            try link.send(phone, .puback(identifier))
        }
        figures = link.shard.figures
        #expect(figures.deliveriesAtLeastOnce.count == 3)
        #expect(abs(figures.deliveriesAtLeastOnce.seconds - 3 * 0.025_5) < 1e-9)
        #expect(figures.acknowledgedDeliveriesAtLeastOnce.count == 3)
        #expect(abs(figures.acknowledgedDeliveriesAtLeastOnce.seconds - 3 * 0.005_5) < 1e-9)
    }

    @Test("a message that nothing is stored for is delivered from its arrival on")
    func unstoredDelivery() throws {
        let link = ShardLink()
        let phone = try link.connect("phone")
        let publisher = try link.connect("publisher")
        try link.send(phone, .subscribe("a/#", .atLeastOnce))
        let before = link.shard.figures.acknowledgements.count
        try link.send(publisher, .publish("a/b", "x", qos: .atLeastOnce, 1, retain: false))
        link.advance(milliseconds: 2_000)
        for case .publish(let publish) in try link.take(phone) {
            guard case .atLeastOnce(let identifier, _) = publish.delivery else { continue }
            try link.send(phone, .puback(identifier))
        }
        let figures = link.shard.figures
        #expect(figures.acknowledgements.count == before)
        #expect(figures.acknowledgedDeliveriesAtLeastOnce == figures.deliveriesAtLeastOnce)
    }

    @Test("commits that complete out of order count each acknowledgement once")
    func acknowledgementsOutOfOrder() throws {
        let link = ShardLink(isImmediate: false)
        let phone = try link.connect("phone", cleanSession: false)
        let publisher = try link.connect("publisher")
        try link.send(phone, .subscribe("a/#", .atLeastOnce))
        link.store.completeAll()
        link.turn()
        let before = link.shard.figures.acknowledgements.count
        for identifier: PacketIdentifier in [1, 2, 3, 4] {
            try link.send(
                publisher, .publish("a/b", "x", qos: .atLeastOnce, identifier, retain: false))
            link.advance(milliseconds: 1)
        }
        for ticket in link.store.pending.reversed() {
            link.store.complete(ticket)
            link.advance(milliseconds: 1)
        }
        #expect(link.shard.figures.acknowledgements.count == before + 4)
    }

    @Test("connections are counted as opened, admitted, refused and closed, and their most")
    func connections() throws {
        let link = ShardLink({ $0.maxSessions = 1 })
        let one = try link.connect("one", cleanSession: false)
        _ = try link.connect("two")
        let refused = link.open()
        var connect = PacketContent.Connect(clientID: "three")
        connect.cleanSession = false
        try link.send(refused, .connect(connect))
        let pending = link.open()
        link.lose(one)
        var figures = link.shard.figures
        #expect(figures.connectionsOpened == 4)
        #expect(figures.connectionsAdmitted == 2)
        #expect(figures.connectionsRefused == 1)
        #expect((figures.connections, figures.connectionsPending) == (1, 1))
        #expect(figures.connectionsPeak == 2)
        #expect((figures.sessions, figures.persistentSessions) == (2, 1))
        #expect(figures.listeners.count == 1)
        #expect((figures.listeners[0].opened, figures.listeners[0].admitted) == (4, 2))
        #expect((figures.listeners[0].refused, figures.listeners[0].closed) == (1, 2))
        #expect(figures.listeners[0].connected == 1)
        link.send(pending, [0xFF])
        figures = link.shard.figures
        #expect(figures.protocolViolations == 1)
        let counters = link.shard.counters
        #expect(counters.closed[.tooManySessions] == 1)
        #expect(counters.closed[.peerClosed] == 1)
        #expect(counters.closed[.protocolViolation] == 1)
        #expect(counters.limits[.maxSessions] == 1)
    }

    @Test("every reason and limit has a word of its own")
    func labels() {
        expectWords(CloseReason.Kind.self)
        expectWords(DropReason.self)
        expectWords(Limit.self)
        #expect(DropCounts<UInt64>.capacity == DropReason.allCases.count)
        var counts = DropCounts<UInt64>()
        for reason in DropReason.allCases { counts.add(reason) }
        #expect(counts.figures.map(\.value) == DropReason.allCases.map { _ in 1 })
    }

    private func expectWords<Label: CountLabel>(_ type: Label.Type) {
        let names = type.allCases.map(\.name)
        #expect(Set(names).count == names.count)
        for (position, label) in type.allCases.enumerated() {
            #expect(Int(label.rawValue) == position)
            #expect(label.name.allSatisfy { $0.isNumber || $0 == "_" || ("a"..."z").contains($0) })
        }
    }

    // MARK: Limits

    @Test("a CONNECT that does not come")
    func connectTimeout() {
        let link = ShardLink()
        _ = link.open()
        link.advance(milliseconds: 10_064)
        #expect(reached(link) == [.connectTimeout: 1])
    }

    @Test(
        "a keep alive that is bound", arguments: [(0, 1), (60, 1), (30, 0)] as [(UInt16, UInt64)])
    func maxKeepAlive(seconds: UInt16, count: UInt64) throws {
        let link = ShardLink({ $0.maxKeepAlive = .seconds(30) })
        _ = try link.connect("client") { $0.keepAlive = seconds }
        #expect(reached(link)[.maxKeepAlive] ?? 0 == count)
    }

    @Test("a packet that is too large, before and after CONNECT")
    func packets() throws {
        let link = ShardLink({
            $0.maxConnectPacketBytes = 100
            $0.maxPacketBytes = 200
        })
        link.send(link.open(), [0x10, 0x7F])
        #expect(reached(link) == [.maxConnectPacket: 1])
        let client = try link.connect("client")
        link.send(client, [0x30, 0xFF, 0x7F])
        #expect(reached(link) == [.maxConnectPacket: 1, .maxPacket: 1])
    }

    @Test("too many topic levels, in PUBLISH, SUBSCRIBE and a will")
    func topicLevels() throws {
        let link = ShardLink({ $0.maxTopicLevels = 3 })
        let deep = "a/b/c/d"
        let client = try link.connect("client") {
            $0.will = PacketContent.Will(topic: deep, message: [])
        }
        try link.send(client, .subscribe(deep, .atMostOnce))
        #expect(reached(link) == [.maxTopicLevels: 1])
        try link.send(client, .publish(deep, "x"))
        #expect(reached(link) == [.maxTopicLevels: 3], "the connection closed, and its will")
    }

    @Test("a full window")
    func maxInFlight() throws {
        let link = ShardLink({ $0.maxInFlight = 1 })
        let client = try link.connect("client")
        try link.send(client, .subscribe("a", .atLeastOnce))
        try link.send(client, .publish("a", "1", qos: .atLeastOnce, 1))
        #expect(reached(link).isEmpty)
        try link.send(client, .publish("a", "2", qos: .atLeastOnce, 2))
        #expect(reached(link)[.maxInFlight] == 1)
    }

    @Test("too many QoS 2 messages without PUBREL")
    func maxInboundQoS2() throws {
        let link = ShardLink({ $0.maxInboundQoS2 = 1 })
        let client = try link.connect("client")
        try link.send(
            client, .publish("a", "1", qos: .exactlyOnce, 1),
            .publish("a", "2", qos: .exactlyOnce, 2))
        #expect(reached(link) == [.maxInboundQoS2: 1])
    }

    @Test("a publisher paused by number or bytes, and its resumption")
    func pausedPublisher() throws {
        for isByBytes in [false, true] {
            let link = ShardLink(
                {
                    if isByBytes {
                        $0.maxUnacknowledgedPublishBytes = 10
                    } else {
                        $0.maxUnacknowledgedPublishes = 1
                    }
                }, isImmediate: false)
            let client = try link.connect("client")
            try link.send(client, .publish("a", "xxxxxxxxxx", qos: .atLeastOnce, 1, retain: true))
            var figures = link.shard.figures
            #expect((figures.publishersPaused, figures.commitsPending) == (1, 1))
            #expect(
                reached(link)
                    == [isByBytes ? .maxUnacknowledgedBytes : .maxUnacknowledgedPublishes: 1])
            link.store.completeAll()
            link.turn()
            figures = link.shard.figures
            #expect((figures.publishersPaused, figures.commitsPending) == (0, 0))

            try link.send(client, .publish("a", "xxxxxxxxxx", qos: .atLeastOnce, 1, retain: true))
            link.lose(client)
            figures = link.shard.figures
            #expect(figures.publishersPaused == 0, "a connection that ends is paused no more")
        }
    }

    @Test("a full queue, by number and by bytes")
    func queues() throws {
        let byNumber = try linkWithAbsentSubscriber { $0.queueMessages = 1 }
        var client = try byNumber.connect("client")
        try byNumber.send(client, .publish("a", "1", qos: .atLeastOnce, 1))
        #expect(reached(byNumber).isEmpty)
        try byNumber.send(client, .publish("a", "2", qos: .atLeastOnce, 1))
        #expect(reached(byNumber) == [.queueMessages: 1])

        let byBytes = try linkWithAbsentSubscriber { $0.queueBytes = 12 }
        client = try byBytes.connect("client")
        try byBytes.send(client, .publish("a", "1", qos: .atLeastOnce, 1))
        #expect(reached(byBytes).isEmpty)
        try byBytes.send(client, .publish("a", "0123456789", qos: .atLeastOnce, 1))
        #expect(reached(byBytes) == [.queueBytes: 1])
    }

    private func linkWithAbsentSubscriber(
        _ change: (inout BrokerLimits) -> Void
    ) throws -> ShardLink {
        let link = ShardLink(change)
        let away = try link.connect("away", cleanSession: false)
        try link.send(away, .subscribe("a", .atLeastOnce))
        link.lose(away)
        return link
    }

    @Test("an expired session")
    func sessionExpiry() throws {
        let link = ShardLink({ $0.sessionExpiry = .seconds(1) })
        let client = try link.connect("client", cleanSession: false)
        link.lose(client)
        link.advance(milliseconds: 1_064)
        #expect(reached(link) == [.sessionExpiry: 1])
        let figures = link.shard.figures
        #expect(figures.sessionsExpired == 1)
    }

    @Test("a receiver that does not read")
    func outputBytes() throws {
        let link = ShardLink({ $0.outputBytes = 100 })
        let client = try link.connect("client")
        try link.send(client, .subscribe("a", .atMostOnce))
        // In one turn, so that nothing is sent in between.
        let publish = try PacketContent.publish("a", String(repeating: "x", count: 90)).encoded()
        link.send(client, publish + publish + publish)
        #expect(reached(link) == [.outputBytes: 1])
        #expect(counters(of: link).dropped[.slowReader] == 1)
    }

    /// The limits met so far, with their counts.
    private func reached(_ link: ShardLink) -> [Limit: UInt64] {
        var result: [Limit: UInt64] = [:]
        for limit in Limit.allCases where link.shard.counters.limits[limit] > 0 {
            result[limit] = link.shard.counters.limits[limit]
        }
        return result
    }

    @Test(
        "every reason of a loss is counted, over all and by session",
        arguments: DropReason.allCases)
    func dropReasons(reason: DropReason) {
        var all = DropCounts<UInt64>()
        var session = SessionDropCounts()
        all.add(reason)
        session.add(reason)
        session.add(reason)
        #expect(all[reason] == 1)
        #expect(session[reason] == 2)
        #expect(session.figures.map(\.value).reduce(0, +) == 2)
    }

    // A shard cannot be copied, so `#expect` must not capture it.
    private func counters(of link: ShardLink) -> BrokerCounters { link.shard.counters }
}
