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

/// A session that changes hands while its queue is loaded or its commits are incomplete.
@Suite("Races of sessions")
struct RaceSessionTests {
    /// A client that is offline with so many waiting messages, numbered from 1.
    private static func away(
        _ waiting: Int, inFlight: Int = 0, _ change: (inout BrokerLimits) -> Void = { _ in }
    ) throws -> (link: ShardLink, publisher: Handle) {
        let link = ShardLink(change, isImmediate: false)
        let phone = try link.subscriber("phone", to: "a", .atLeastOnce)
        let publisher = try link.connect("publisher")
        try link.publish((1...max(1, inFlight)).map { "sent \($0)" }, to: "a", from: publisher)
        link.commitAll()
        // Completes the exchanges that should not be in flight.
        for packet in try link.take(phone) where inFlight == 0 {
            if case .publish(let publish) = packet, let identifier = publish.packetIdentifier {
                try link.send(phone, .puback(identifier))
            }
        }
        link.lose(phone)
        try link.publish((0..<waiting).map { "\($0 + 1)" }, to: "a", from: publisher)
        link.commitAll()
        _ = try link.take(publisher)
        return (link, publisher)
    }

    // MARK: Clean session 1 over a stored session

    /// ```
    ///   phone, 1st (clean 0)     broker / store            phone, 2nd (clean 1)
    ///     CONNECT ----------------> read queue ...
    ///                               <----------------------- CONNECT
    ///                               session removed, commit
    ///                               ... slice: for no connection
    ///                               CONNACK, session present 0 ->
    /// ```
    @Test(
        "[MQTT-3.1.2-6] clean session 1 discards a stored session and its queue, also while it is read",
        arguments: [false, true], [0, 3])
    func cleanSessionDiscards(whileReading: Bool, inFlight: Int) throws {
        let (link, publisher) = try Self.away(100, inFlight: inFlight)
        link.store.holdsReads = true
        if whileReading { _ = try link.beginConnect("phone") }
        let clean = try link.beginConnect("phone", cleanSession: true)
        #expect(try link.take(clean).isEmpty, "the removal is not stored yet")
        link.commitAll()
        #expect(try link.take(clean) == [.connack(.accepted(sessionPresent: false))])
        link.store.holdsReads = false
        link.turn()
        #expect(try link.take(clean).isEmpty)
        try link.send(publisher, .publish("a", "x", qos: .atLeastOnce, 1))
        link.commitAll()
        #expect(try link.take(clean).isEmpty, "its subscription is gone too")
        #expect(link.store.positions(of: 1).isEmpty)
        let figures = link.shard.figures
        #expect((figures.queued, figures.queuedBytes, figures.inFlight) == (0, 0, 0))
        #expect((figures.persistentSessions, figures.subscriptions) == (0, 0))
    }

    // MARK: Disconnect and reconnect at once

    /// ```
    ///   phone, 1st       broker / store          phone, 2nd
    ///     PUBLISH 7 ----->  commit 1 ...
    ///     DISCONNECT ---->
    ///                       <---------------------- CONNECT
    ///                       commit 2 (attached) done
    ///                       commit 1 done
    ///                       CONNACK ----------------->  behind both
    /// ```
    @Test(
        "DISCONNECT and an immediate CONNECT: CONNACK waits for the first connection's commits",
        arguments: RaceEnd.allCases, RaceCompletion.allCases)
    func reconnectAtOnce(end: RaceEnd, completion: RaceCompletion) throws {
        let link = ShardLink(isImmediate: false)
        let witness = try link.subscriber("witness", to: "b", .atLeastOnce)
        let first = try link.connect("phone", cleanSession: false)
        try link.send(
            first, .subscribe("a", .atLeastOnce), .publish("b", "x", qos: .atLeastOnce, 7))
        if completion == .before { link.commitAll() }
        let second = try end.replace(link, first)
        let early = try link.take(second)
        #expect(early.isEmpty || completion == .before, "answered before what is pending")
        completion.complete(link)
        #expect(
            try early + link.take(second) == [.connack(.accepted(sessionPresent: true))])
        #expect(try link.takeAll(witness) == ["x"])
        // The first connection's subscription belongs to the session.
        try link.send(witness, .publish("a", "y", qos: .atLeastOnce, 1))
        link.commitAll()
        #expect(try link.take(second).payloads == ["y"])
    }

    // MARK: Ends while the queue is read

    /// ```
    ///   phone, 1st       broker / store              phone, 2nd
    ///     CONNECT ------->  read 1 ...
    ///     (closed)          <-------------------------- CONNECT
    ///                       read 2 ...
    ///                       slice 1: for no connection
    ///                       slice 2, CONNACK ------------->  whole queue, once
    /// ```
    @Test(
        "a client that reconnects while its queue is loaded gets all of it once, in order",
        arguments: RaceEnd.allCases, [0, 3])
    func goneWhileReading(end: RaceEnd, inFlight: Int) throws {
        let (link, _) = try Self.away(100, inFlight: inFlight)
        link.store.holdsReads = true
        let first = try link.beginConnect("phone")
        let second = try end.replace(link, first)
        let third = try RaceEnd.takenOver.replace(link, second)
        link.commitAll()
        #expect(try link.take(third).isEmpty, "CONNACK leaves together with the first slice")
        link.store.holdsReads = false
        // One read per session at a time: the next begins in the turn after the last result.
        link.turn()
        link.turn()
        #expect(try link.take(first).isEmpty && link.take(second).isEmpty)
        let packets = try link.take(third)
        #expect(packets.first == .connack(.accepted(sessionPresent: true)))
        for case .publish(let publish) in packets {
            guard case .atLeastOnce(let identifier, let isDuplicate) = publish.delivery else {
                Issue.record("QoS \(publish.delivery.qos) instead of 1")
                continue
            }
            #expect(isDuplicate == (identifier.rawValue <= inFlight), "\(publish)")
            try link.send(third, .puback(identifier))
        }
        link.commitAll()
        let sent = inFlight == 0 ? [] : (1...inFlight).map { "sent \($0)" }
        #expect(
            try packets.payloads + link.takeAll(third) == sent + (1...100).map { "\($0)" })
        let figures = link.shard.figures
        #expect((figures.queued, figures.queuedBytes, figures.inFlight) == (0, 0, 0))
    }

    @Test(
        "a client that disconnects during its queue gets the rest next time, DUP on re-deliveries"
    )
    func goneBetweenSlices() throws {
        let (link, publisher) = try Self.away(200) { $0.maxInFlight = 5 }
        let first = try link.beginConnect("phone")
        link.commitAll()
        var payloads: [String] = []
        // The client reads some, until more of its queue is being loaded, and disconnects.
        for _ in 0..<12 {
            for case .publish(let publish) in try link.take(first) {
                payloads.append(String(decoding: publish.payload, as: UTF8.self))
                guard payloads.count <= 40, let identifier = publish.packetIdentifier else {
                    continue
                }
                try link.send(first, .puback(identifier))
            }
            link.store.holdsReads = payloads.count > 30
            link.commitAll()
        }
        #expect(payloads == (1...45).map { "\($0)" })
        link.lose(first)
        try link.send(publisher, .publish("a", "201", qos: .atLeastOnce, 1))
        link.store.holdsReads = false
        let second = try link.beginConnect("phone")
        link.commitAll()
        let packets = try link.take(second)
        #expect(packets.payloads == (41...45).map { "\($0)" }, "the window and no more")
        for case .publish(let publish) in packets {
            guard case .atLeastOnce(let identifier, let isDuplicate) = publish.delivery else {
                continue
            }
            #expect(isDuplicate)
            try link.send(second, .puback(identifier))
        }
        link.commitAll()
        #expect(try link.takeAll(second) == (46...201).map { "\($0)" })
    }

    // MARK: Faults that these tests have found

    @Test("messages dropped by a full queue during a load are not sent")
    func droppedWhileReading() throws {
        let large = String(repeating: "x", count: 100)
        let link = ShardLink({ $0.queueBytes = 1_000 }, isImmediate: false)
        let phone = try link.subscriber("phone", to: "a", .atLeastOnce)
        link.lose(phone)
        let publisher = try link.connect("publisher")
        try link.publish((1...8).map { "\($0) \(large)" }, to: "a", from: publisher)
        link.commitAll()
        link.store.holdsReads = true
        let again = try link.beginConnect("phone")
        try link.publish((9...14).map { "\($0) \(large)" }, to: "a", from: publisher)
        link.commitAll()
        let dropped = link.shard.counters.dropped[.queueFull]
        link.store.holdsReads = false
        link.turn()
        let packets = try link.take(again)
        for case .publish(let publish) in packets {
            guard case .atLeastOnce(let identifier, let isDuplicate) = publish.delivery else {
                continue
            }
            #expect(!isDuplicate, "nothing was sent before")
            try link.send(again, .puback(identifier))
        }
        link.commitAll()
        let numbers = try (packets.payloads + link.takeAll(again))
            .compactMap { Int($0.prefix { $0.isNumber }) }
        #expect(dropped > 0)
        #expect(numbers == Array((1 + Int(dropped))...14))
    }

    @Test("QoS 0 that waits for a commit leaves no gap in the queue of a disconnecting client")
    func noGapInQueue() throws {
        let link = ShardLink({ $0.maxInFlight = 2 }, isImmediate: false)
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(
            phone,
            .subscribe(
                1,
                [
                    PacketContent.Request("q0", .atMostOnce),
                    PacketContent.Request("q1", .atLeastOnce),
                ]))
        _ = try link.subscriber("other", to: "q0", .atLeastOnce)
        _ = try link.take(phone)
        let publisher = try link.connect("publisher")
        for number in 1...20 {
            try link.send(
                publisher,
                .publish(number % 2 == 0 ? "q0" : "q1", "\(number)", qos: .atLeastOnce, 1))
        }
        link.lose(phone)
        link.commitAll()
        // A restart computes the number in flight: positions minus rows.
        let detail = link.shard.client("phone") { _ in "" }
        #expect(detail?.summary.queued == link.store.positions(of: 1).count)
        for _ in 0..<3 {
            let again = try link.beginConnect("phone")
            link.commitAll()
            let sure = try link.takePayloads(again).filter { Int($0).map { $0 % 2 } == 1 }
            #expect(sure.count <= 2, "more than the window: \(sure)")
            link.lose(again)
        }
    }

    @Test("a slow commit of CONNECT does not use up the client's keep alive")
    func slowConnack() throws {
        let link = ShardLink(isImmediate: false)
        let client = try link.beginConnect("phone") { $0.keepAlive = 1 }
        link.advance(milliseconds: 10_000)
        link.commitAll()
        #expect(try link.take(client).count == 1)
        link.advance(milliseconds: 1_400)
        #expect(!link.closed.contains(client))
        link.advance(milliseconds: 200)
        #expect(link.closeReasons == [.keepAlive])
    }
}
