import BrokerCore
import BrokerFeatures
import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Store
import Structures
import Testing

/// While the disk hangs, memory stays bounded whatever clients send.
@Suite("The backlog of a disk that hangs")
struct StoreBacklogTests {
    /// The bound of the backlog in bytes.
    private static let bound = 20_000
    private static let payload = String(repeating: "x", count: 1_000)

    private func makeLink(_ change: (inout BrokerLimits) -> Void = { _ in }) -> ShardLink {
        ShardLink(
            {
                $0.storeBacklogBytes = Self.bound
                change(&$0)
            }, isImmediate: false)
    }

    /// Connects a clean session, which needs no store, while nothing completes.
    private func beginClean(_ link: ShardLink, _ identifier: String) throws -> Handle {
        let handle = try link.beginConnect(identifier, cleanSession: true) { $0.keepAlive = 1 }
        #expect(try link.take(handle) == [.connack(.accepted(sessionPresent: false))])
        return handle
    }

    private func isHeld(_ link: ShardLink, _ handle: Handle) -> Bool {
        link.shard.holdsInput(handle)
    }

    private func waitsToConnect(_ link: ShardLink, _ handle: Handle) -> Bool {
        link.shard.isConnectWaiting(handle)
    }

    /// Bytes of payloads, filters and identifiers in submitted, incomplete groups.
    private func waitingBytes(_ link: ShardLink) -> Int {
        let pending = Set(link.store.pending)
        return link.store.groups.filter { pending.contains($0.ticket) }.flatMap(\.records)
            .reduce(0) { sum, record in
                switch record {
                case .message(_, _, let payload, _, _, _): sum + payload.count
                case .subscription(_, let filter, _): sum + filter.count
                case .subscriptionRemoved(_, let filter): sum + filter.count
                case .session(_, let identifier, _): sum + identifier.count
                default: sum
                }
            }
    }

    /// Packets that a client may send without limit while it waits for no PUBACK.
    enum Flood: CaseIterable {
        case retained, subscribe, unsubscribe

        func packet(_ number: Int) -> PacketContent {
            let filter = "\(number)/" + StoreBacklogTests.payload
            return switch self {
            case .retained: .publish("a", StoreBacklogTests.payload, retain: true)
            case .subscribe: .subscribe(filter, .atLeastOnce)
            case .unsubscribe: .unsubscribe(1, [Array(filter.utf8)])
            }
        }
    }

    @Test(
        "above the bound a flood is not read, and all of it counts in the end",
        arguments: Flood.allCases)
    func floods(_ kind: Flood) throws {
        let link = makeLink()
        let client = try link.connect("client", cleanSession: false) { $0.keepAlive = 1 }
        if kind == .unsubscribe {
            for number in 1...60 {
                try link.send(client, Flood.subscribe.packet(number))
                link.commitAll()
            }
            _ = try link.take(client)
        }
        for number in 1...60 { try link.send(client, kind.packet(number)) }
        #expect(isHeld(link, client))
        let waiting = waitingBytes(link)
        #expect(waiting > Self.bound / 2 && waiting < Self.bound + 2_000)
        #expect(link.reached(.storeBacklog) == 1)
        // The broker caused the silence.
        link.advance(milliseconds: 60_000)
        #expect(link.closeReasons.isEmpty)

        // It waits until half of the bound.
        link.store.complete(link.store.pending[0])
        link.turn()
        #expect(isHeld(link, client))
        for _ in 1...10 where isHeld(link, client) || !link.store.pending.isEmpty {
            link.commitAll()
        }
        #expect(!isHeld(link, client))
        let records = link.store.records
        switch kind {
        case .retained:
            #expect(records.count { if case .retained = $0 { true } else { false } } == 60)
        case .subscribe:
            #expect(try link.take(client).count == 60)
        case .unsubscribe:
            #expect(try link.take(client).count == 60)
            #expect(
                records.count { if case .subscriptionRemoved = $0 { true } else { false } } == 60)
        }
        #expect(link.shard.counters.publishersPaused == 0)
    }

    @Test("QoS 0 queued after waiting messages is stored and counts for the bound")
    func lowered() throws {
        let link = makeLink()
        let phone = try link.subscriber("phone", to: "a", .atLeastOnce)
        try link.send(phone, .subscribe("b", .atMostOnce))
        link.commitAll()
        _ = try link.take(phone)
        let publisher = try beginClean(link, "publisher")
        try link.send(publisher, .publish("a", "first", qos: .atLeastOnce, 1))
        for number in 2...61 {
            try link.send(
                publisher,
                .publish("b", Self.payload, qos: .atLeastOnce, .init(number: number)))
        }
        #expect(isHeld(link, publisher))
        #expect(waitingBytes(link) < Self.bound + 2_000)
        for _ in 1...10 { link.commitAll() }
        let payloads = try link.takeAll(phone)
        #expect(payloads.first == "first" && payloads.count == 61)
    }

    @Test("many clients have the bound together")
    func together() throws {
        let link = makeLink()
        for number in 1...60 {
            let client = try beginClean(link, "c\(number)")
            try link.send(client, .publish("t\(number)", Self.payload, retain: true))
        }
        #expect(waitingBytes(link) < Self.bound + 2_000)
        #expect(link.shard.counters.publishersPaused > 30)
        for _ in 1...10 { link.commitAll() }
        #expect(link.shard.counters.publishersPaused == 0)
        #expect(link.shard.figures.retained == 60)
    }

    @Test("the client that has waited longest continues first: a slow disk starves nobody")
    func order() throws {
        let link = makeLink()
        let clients = try (1...60).map { try beginClean(link, "c\($0)") }
        for _ in 1...20 {
            for (number, client) in clients.enumerated() where !isHeld(link, client) {
                for _ in 1...3 {
                    try link.send(client, .publish("t\(number)", Self.payload, retain: true))
                }
            }
            link.commitAll()
        }
        var stored: [[UInt8]: Int] = [:]
        for case .message(_, let topic, _, _, _, _) in link.store.records {
            stored[topic, default: 0] += 1
        }
        #expect(stored.count == 60)
        let counts = stored.values
        #expect((counts.max() ?? 0) - (counts.min() ?? 0) <= 4)
    }

    @Test("sessions and wills that would be stored wait with their CONNECT, past its deadline")
    func connects() throws {
        let link = makeLink { $0.connectTimeout = .seconds(2) }
        let flooder = try beginClean(link, "flooder")
        for _ in 1...60 { try link.send(flooder, Flood.retained.packet(1)) }
        let waiting = waitingBytes(link)
        let session = try link.beginConnect("session")
        let will = try link.beginConnect("will", cleanSession: true) {
            $0.will = PacketContent.Will(topic: "w", message: [1])
        }
        let silent = link.open()
        #expect(waitingBytes(link) == waiting)
        // A client that disconnects meanwhile must be noticed.
        #expect(
            [session, will, silent, flooder].map { waitsToConnect(link, $0) }
                == [true, true, false, false])
        link.advance(milliseconds: 2_300)
        #expect(link.closed == [silent])
        for _ in 1...10 { link.commitAll() }
        for handle in [session, will] {
            #expect(!waitsToConnect(link, handle))
            #expect(try link.take(handle) == [.connack(.accepted(sessionPresent: false))])
        }
    }

    @Test("reading, pinging and publishing without the store continue, for new clients too")
    func othersGoOn() throws {
        let link = makeLink()
        let reader = try link.subscriber("reader", to: "live/#", .atLeastOnce)
        let flooder = try beginClean(link, "flooder")
        for _ in 1...60 { try link.send(flooder, Flood.retained.packet(1)) }
        #expect(isHeld(link, flooder))

        try link.send(reader, .publish("live/1", "1"), .pingreq)
        #expect(try link.take(reader) == [.publish("live/1", "1"), .pingresp])
        let newcomer = try beginClean(link, "newcomer")
        try link.send(newcomer, .subscribe("x", .exactlyOnce), .publish("x", "2"))
        #expect(try link.take(newcomer) == [.suback(1, [2]), .publish("x", "2")])

        #expect(!isHeld(link, reader) && !isHeld(link, newcomer))
    }

    @Test("an HTTP publish that would be stored is refused, another one is not")
    func adminPublish() throws {
        let link = makeLink()
        let flooder = try beginClean(link, "flooder")
        for _ in 1...60 { try link.send(flooder, Flood.retained.packet(1)) }
        let answers = Answers<PublishOutcome>()
        for retain in [true, false] {
            link.shard.publish(
                Publication(
                    topic: Array("a".utf8), payload: [1], qos: .atLeastOnce, retain: retain),
                reply: answers.reply)
        }
        #expect(answers.values.map { (try? $0.get()) != nil } == [false, true])
    }

    @Test("retained messages for persistent sessions wait until the disk continues")
    func retainedWalk() throws {
        let link = makeLink()
        let publisher = try link.connect("publisher")
        for number in 1...60 {
            try link.send(
                publisher,
                .publish("r/\(number)", Self.payload, qos: .atLeastOnce, 1, retain: true))
            link.commitAll()
        }
        let client = try link.connect("client", cleanSession: false)
        try link.send(client, .subscribe("r/#", .atLeastOnce))
        for _ in 1...10 { link.turn() }
        #expect(waitingBytes(link) < Self.bound + 2_000)
        #expect(link.shard.nextDeadline != link.shard.now, "it does not turn in vain")
        var payloads: [String] = []
        for _ in 1...20 {
            link.commitAll()
            payloads += try link.takeAll(client)
        }
        #expect(payloads.count == 60)
    }

    @Test(
        "SUBSCRIBE and UNSUBSCRIBE count against limits.max_unacknowledged_publishes",
        arguments: [false, true])
    func acknowledgements(unsubscribes: Bool) throws {
        let link = ShardLink({ $0.maxUnacknowledgedPublishes = 4 }, isImmediate: false)
        let client = try link.connect("client", cleanSession: false)
        if unsubscribes {
            try link.send(client, .subscribe("a", .atLeastOnce))
        } else {
            try link.send(client, .publish("a", "x", qos: .atLeastOnce, 1, retain: true))
        }
        for number in 2...9 {
            if unsubscribes {
                try link.send(client, .unsubscribe(1, [Array("a".utf8)]))
            } else {
                try link.send(client, .subscribe("\(number)", .atLeastOnce))
            }
        }
        #expect(isHeld(link, client))
        #expect(link.reached(.maxUnacknowledgedPublishes) == 1)
        for _ in 1...5 { link.commitAll() }
        #expect(!isHeld(link, client))
        #expect(try link.take(client).count == 9)
    }

    @Test("a full disk does not hold back clients that wait for another reason")
    func refusing() throws {
        let link = makeLink()
        let client = try link.connect("client", cleanSession: false)
        for number in 1...60 { try link.send(client, Flood.subscribe.packet(number)) }
        #expect(isHeld(link, client))
        link.store.isAccepting = false
        for _ in 1...10 { link.commitAll() }
        #expect(!isHeld(link, client))
        #expect(try link.take(client).count == 60)
        try link.send(client, Flood.retained.packet(1))
        #expect(isHeld(link, client))
        link.store.isAccepting = true
        link.turn()
        #expect(!isHeld(link, client))
    }

    @Test("one turn stores no more than there is room for, and the rest waits for more")
    func room() throws {
        let link = ShardLink(isImmediate: true)
        let client = try link.connect("client", cleanSession: false)
        let payload = String(repeating: "x", count: 1_000)
        link.store.room = 6_000
        link.turn()
        let packets = try (1...20).flatMap { number in
            try PacketContent.publish(
                "\(number)", payload, qos: .atLeastOnce,
                try #require(PacketIdentifier(UInt16(number))), retain: true
            ).encoded()
        }
        link.send(client, packets)
        link.turn()
        // The last one was begun while there was room; the store keeps room for it.
        let taken = try link.take(client).count
        #expect((4...5).contains(taken))
        #expect(isHeld(link, client) && link.store.room < 0)
        link.turn()
        #expect(try link.take(client).isEmpty)
        link.store.room = .max
        link.turn()
        link.turn()
        #expect(try link.take(client).count == 20 - taken)
        #expect(!isHeld(link, client))
    }

    @Test("what gives room back is not refused for want of room")
    func removalsWithoutRoom() throws {
        let link = ShardLink(isImmediate: true)
        let away = try link.connect("away", cleanSession: false)
        try link.send(away, .subscribe("t", .atLeastOnce))
        link.lose(away)
        let client = try link.connect("client", cleanSession: false)
        try link.send(client, .publish("t", "1", qos: .atLeastOnce, 1, retain: true))
        link.store.isAccepting = false
        link.turn()
        let answers = Answers<Bool>()
        let drops = Answers<QueueDrop?>()
        link.shard.dropQueue(of: "away", below: nil, reply: drops.reply)
        link.shard.endSession(of: "away", reply: answers.reply)
        link.shard.removeRetained("t", reply: answers.reply)
        link.turn()
        #expect(answers.values == [.success(true), .success(true)])
        #expect(try drops.values.first?.get()?.dropped == 1)
        let tags = Answers<TagChange>()
        link.shard.changeTags(of: "client", add: ["new"], remove: [], reply: tags.reply)
        link.shard.changeTags(of: "client", add: [], remove: ["old"], reply: tags.reply)
        link.turn()
        #expect(tags.values == [.failure(.storeRefuses), .success(.changed([]))])
    }

    @Test(
        "a packet that would have to wait is not read to its end",
        arguments: [true, false])
    func unfinished(isStored: Bool) throws {
        let link = makeLink()
        _ = try link.subscriber("subscriber", to: "kept", .atLeastOnce)
        let filler = try beginClean(link, "filler")
        while !isHeld(link, filler) {
            try link.send(filler, .publish("kept", Self.payload, qos: .atLeastOnce))
        }
        let client = try beginClean(link, "client")
        let packet = try PacketContent.publish(
            isStored ? "kept" : "free", Self.payload, qos: .atLeastOnce, 7
        ).encoded()
        for end in [1, 3, 8] {
            link.send(client, Array(packet[(end == 1 ? 0 : end == 3 ? 1 : 3)..<end]))
            #expect(!isHeld(link, client))
        }
        link.send(client, Array(packet[8..<200]))
        #expect(isHeld(link, client) == isStored)
        for _ in 1...4 { link.commitAll() }
        #expect(!isHeld(link, client))
        link.send(client, Array(packet[200...]))
        link.commitAll()
        #expect(try link.take(client) == [.puback(7)])
    }

    @Test("a DISCONNECT among packets that are held back discards the will at once")
    func arrivedDisconnect() throws {
        let link = makeLink { $0.maxUnacknowledgedPublishes = 1 }
        _ = try link.subscriber("subscriber", to: "kept", .atLeastOnce)
        let witness = try beginClean(link, "witness")
        try link.send(witness, .subscribe("will", .atMostOnce))
        _ = try link.take(witness)
        let publish = try PacketContent.publish("kept", "x", qos: .atLeastOnce, 2).encoded()
        let disconnect = try PacketContent.disconnect.encoded()
        // By what has arrived: true when it discards the will.
        let cases: [([UInt8], Bool)] = [
            (publish + disconnect, true), (disconnect + [0xF0], true), (publish, false),
            (publish + disconnect.dropLast(), false), ([0xF0] + disconnect, false),
        ]
        for (number, (bytes, discards)) in cases.enumerated() {
            let client = try link.connect("client\(number)") {
                $0.will = PacketContent.Will(topic: "will", message: Array("gone".utf8))
            }
            try link.send(client, .publish("kept", "x", qos: .atLeastOnce, 1))
            #expect(isHeld(link, client))
            bytes.withUnsafeBytes { link.shard.noteArrived(client, $0) }
            link.lose(client)
            link.commitAll()
            #expect(try link.takePayloads(witness) == (discards ? [] : ["gone"]))
        }
    }

    @Test("very many that wait for the store go on a part at a time, in their order")
    func manyWaiters() throws {
        let link = ShardLink(isImmediate: false)
        link.store.isAccepting = false
        let clients = try (0..<3_000).map { try beginClean(link, "c\($0)") }
        for client in clients { try link.send(client, .publish("a", "x", retain: true)) }
        #expect(clients.allSatisfy { isHeld(link, $0) })
        for client in clients[..<1_000] { link.lose(client) }
        link.store.isAccepting = true
        var (turns, most, done) = (0, 0, 1_000)
        repeat {
            link.turnOnce()
            turns += 1
            let held = clients[1_000...].count { isHeld(link, $0) }
            most = max(most, clients.count - held - done)
            done = clients.count - held
            if held > 0 { #expect(isHeld(link, clients[2_999]), "the last one goes on first") }
        } while link.shard.hasTurnWaiters && turns < 1_000
        #expect(done == clients.count && turns > 1 && most <= 1_280, "\(most) in one of \(turns)")
        for client in clients[1_000...] {
            #expect(link.shard.holdsInput(client) == false)
        }
    }

    @Test("a stored message is released to very many a part at a time, to each of them once")
    func released() throws {
        let link = ShardLink(isImmediate: false)
        let clients = try (0..<6_000).map {
            let client = try beginClean(link, "c\($0)")
            try link.send(client, .subscribe("a", .atLeastOnce))
            _ = try link.take(client)
            return client
        }
        let publisher = try beginClean(link, "publisher")
        try link.send(publisher, .publish("a", "x", qos: .atLeastOnce, 1, retain: true))
        #expect(try link.take(publisher).isEmpty, "the retained message waits for its commit")
        for ticket in link.store.pending { link.store.complete(ticket) }
        link.turnOnce()
        let first = link.shard.committed.count
        #expect(first > 0 && first < clients.count, "\(first) are left after the first turn")
        link.turn()
        #expect(link.shard.committed.count == 0)
        for client in clients { #expect(payloads(try link.take(client)) == ["x"]) }
    }
}
