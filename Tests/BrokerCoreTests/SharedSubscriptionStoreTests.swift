import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Store
import Structures
import Testing

@Suite("Shared subscriptions with stored messages")
struct SharedSubscriptionStoreTests {
    private static let group = "$share/g/jobs/#"

    /// Persistent members, connected.
    private func members(_ link: ShardLink, _ names: [String]) throws -> [Handle] {
        try names.map { name in
            let handle = try link.connect(name, cleanSession: false)
            try link.send(handle, .subscribe(Self.group, .exactlyOnce))
            _ = try link.take(handle)
            return handle
        }
    }

    private func publish(
        _ link: ShardLink, _ numbers: ClosedRange<Int>, qos: QoS = .atLeastOnce
    ) throws {
        let publisher = try link.connect("publisher")
        for number in numbers {
            let identifier = try #require(PacketIdentifier(UInt16(number)))
            try link.send(publisher, .publish("jobs/x", "\(number)", qos: qos, identifier))
        }
        link.lose(publisher)
    }

    private func payloads(_ packets: [PacketContent]) -> [Int] {
        packets.compactMap { packet in
            guard case .publish(let publish) = packet else { return nil }
            return Int(String(decoding: publish.payload, as: UTF8.self))
        }
    }

    /// Reconnects a member; receives and acknowledges all its messages.
    private func drain(_ link: ShardLink, _ name: String) throws -> [Int] {
        let handle = link.open()
        var connect = PacketContent.Connect(clientID: name)
        connect.cleanSession = false
        try link.send(handle, .connect(connect))
        var received: [Int] = []
        while true {
            let packets = try link.take(handle)
            guard !packets.isEmpty else { return received }
            received += payloads(packets)
            for packet in packets {
                guard case .publish(let publish) = packet else { continue }
                switch publish.delivery {
                case .atMostOnce: continue
                case .atLeastOnce(let identifier, _): try link.send(handle, .puback(identifier))
                case .exactlyOnce(let identifier, _):
                    try link.send(handle, .pubrec(identifier), .pubcomp(identifier))
                }
            }
            link.turn()
        }
    }

    /// Whichever group of records was the last on disk, each message is stored exactly once, from
    /// the group that stores it to the group that ends it.
    private func requireKeptOnce(_ link: ShardLink) {
        var holders: [Int: Int] = [:]
        var queues: [UInt64: [UInt64: Int]] = [:]
        for (ticket, records) in link.store.groups {
            var contents: [UInt64: Int] = [:]
            var acknowledged: Set<Int> = []
            for record in records {
                switch record {
                case .message(let number, _, let payload, _, _, _):
                    contents[number] = Int(String(decoding: payload, as: UTF8.self))
                case .queued(let session, let position, let message, _, _, _):
                    queues[session, default: [:]][position] = contents[message]
                case .finished(let session, let position):
                    if let done = queues[session]?.removeValue(forKey: position) {
                        acknowledged.insert(done)
                    }
                case .sessionRemoved(let session): queues[session] = nil
                default: continue
                }
            }
            let held = queues.values.flatMap(\.values)
            for number in Set(held).union(holders.keys) {
                let count = held.count { $0 == number }
                let isDone = count == 0 && acknowledged.contains(number)
                #expect(
                    count == 1 || isDone, "message \(number) is kept \(count) times after \(ticket)"
                )
                holders[number] = isDone ? nil : count
            }
        }
    }

    enum End {
        case cleanSession
        case expiry
    }

    private func end(_ link: ShardLink, _ name: String, _ end: End) throws {
        switch end {
        case .cleanSession: link.lose(try link.connect(name))
        case .expiry: link.advance(milliseconds: 1_000 * 3_600)
        }
        for _ in 1...20 { link.turn() }
    }

    @Test(
        "messages of an offline member whose session ends go to another member",
        arguments: [End.cleanSession, .expiry])
    func ends(how: End) throws {
        let link = ShardLink({ $0.sessionExpiry = .seconds(3_600) })
        let members = try members(link, ["a", "b"])
        for member in members { link.lose(member) }
        try publish(link, 1...300)
        // Its session was created later, so it expires after the other.
        if how == .expiry {
            link.advance(milliseconds: 1_000)
            #expect(try drain(link, "b") == Array(stride(from: 2, through: 300, by: 2)))
        }
        try end(link, "a", how)
        #expect(
            try drain(link, "b")
                == (how == .expiry ? [] : Array(stride(from: 2, through: 300, by: 2)))
                + Array(stride(from: 1, through: 299, by: 2)))
        requireKeptOnce(link)
        #expect(link.shard.counters.dropped[.offline] == 0)
    }

    @Test("the store has an ended session until the last of its messages is another's")
    func endsInOrder() throws {
        let link = ShardLink()
        for member in try members(link, ["a", "b"]) { link.lose(member) }
        try publish(link, 1...200)
        link.store.holdsReads = true
        link.lose(try link.connect("a"))
        let number = try #require(
            link.store.records.lazy.compactMap { record -> UInt64? in
                guard case .session(let number, let identifier, _) = record,
                    identifier == Array("a".utf8)
                else { return nil }
                return number
            }.first)
        #expect(link.store.records.contains(.sessionEnded(number)))
        #expect(!link.store.records.contains(.sessionRemoved(number)))
        #expect(link.store.positions(of: number).count == 100)
        link.store.holdsReads = false
        for _ in 1...10 { link.turn() }
        #expect(link.store.records.last == .sessionRemoved(number))
        #expect(try drain(link, "b").count == 200)
        requireKeptOnce(link)
    }

    @Test("when a session ends, sent QoS 1 messages go to another member, and QoS 2 do not")
    func inFlight() throws {
        let link = ShardLink({ $0.maxInFlight = 2 })
        let a = try members(link, ["a"])[0]
        try publish(link, 1...1, qos: .exactlyOnce)
        try publish(link, 2...4)
        #expect(payloads(try link.take(a)) == [1, 2])
        link.lose(a)
        link.lose(try members(link, ["b"])[0])
        try end(link, "a", .cleanSession)
        #expect(try drain(link, "b") == [2, 3, 4])
    }

    @Test("a member's own messages are not the group's, and go with its session")
    func ownMessages() throws {
        let link = ShardLink()
        let members = try members(link, ["a", "b"])
        try link.send(members[0], .subscribe("jobs/#", .atLeastOnce))
        for member in members { link.lose(member) }
        try publish(link, 1...10)
        try end(link, "a", .cleanSession)
        #expect(try drain(link, "b") == [2, 4, 6, 8, 10, 1, 3, 5, 7, 9])
    }

    @Test("a connected member that leaves the group hands over messages that only the store has")
    func unsubscribes() throws {
        let link = ShardLink({ $0.maxInFlight = 2 })
        let a = try members(link, ["a"])[0]
        try publish(link, 1...300)
        #expect(payloads(try link.take(a)) == [1, 2])
        let b = try members(link, ["b"])[0]
        link.lose(b)
        try link.send(a, .unsubscribe(2, [Array(Self.group.utf8)]))
        for _ in 1...20 { link.turn() }
        #expect(try drain(link, "b") == Array(3...300))
        // Sent messages stay with their client [MQTT-3.10.4-3] until its session ends.
        link.lose(a)
        try end(link, "a", .cleanSession)
        #expect(try drain(link, "b") == [1, 2])
        requireKeptOnce(link)
    }

    @Test("a member that goes offline during the hand-over finishes it when its session ends")
    func unsubscribesAndGoes() throws {
        let link = ShardLink({ $0.maxInFlight = 2 })
        let a = try members(link, ["a"])[0]
        try publish(link, 1...200)
        link.lose(try members(link, ["b"])[0])
        link.store.holdsReads = true
        try link.send(a, .unsubscribe(2, [Array(Self.group.utf8)]))
        link.lose(a)
        link.store.holdsReads = false
        try end(link, "a", .cleanSession)
        #expect(try drain(link, "b").sorted() == Array(1...200))
        requireKeptOnce(link)
    }

    @Test("without remaining members the message is dropped and counted")
    func nobodyLeft() throws {
        let link = ShardLink()
        link.lose(try members(link, ["a"])[0])
        try publish(link, 1...3)
        try end(link, "a", .cleanSession)
        #expect(link.shard.counters.dropped[.offline] == 3)
        requireGone(link)
    }

    private func requireGone(_ link: ShardLink) {
        guard case .sessionRemoved? = link.store.records.last else {
            Issue.record("the ended session is still there")
            return
        }
    }

    @Test("while the disk refuses, an ended session waits, and nothing is lost")
    func storeRefuses() throws {
        let link = ShardLink()
        for member in try members(link, ["a", "b"]) { link.lose(member) }
        try publish(link, 1...10)
        link.store.isAccepting = false
        link.turn()
        try end(link, "a", .cleanSession)
        #expect(link.shard.nextDeadline != link.shard.now, "it does not turn in vain")
        link.store.isAccepting = true
        for _ in 1...10 { link.turn() }
        requireGone(link)
        #expect(try drain(link, "b").count == 10)
        requireKeptOnce(link)
    }

    @Test("many sessions that end at once are read a few at a time")
    func manyEnd() throws {
        let link = ShardLink({ $0.queueMessages = 10_000 })
        let names = (1...40).map { "m\($0)" }
        for member in try members(link, names + ["last"]) { link.lose(member) }
        try publish(link, 1...410)
        for name in names { link.lose(try link.connect(name)) }
        for _ in 1...60 { link.turn() }
        #expect(try drain(link, "last").sorted() == Array(1...410))
        requireKeptOnce(link)
    }

    @Test("what other members got leaves holes, behind which nothing counts as sent")
    func holesBetweenOwnMessages() throws {
        let link = ShardLink({ $0.maxInFlight = 1 })
        let phone = try link.subscriber("phone", to: "own", .atLeastOnce)
        try link.send(phone, .subscribe("zero", .atMostOnce), .subscribe(Self.group, .atLeastOnce))
        _ = try link.take(phone)
        let publisher = try link.connect("publisher")
        for (number, topic) in ["own", "own", "jobs/1", "zero", "jobs/2", "own"].enumerated() {
            try link.send(
                publisher,
                .publish(topic, "\(number)", qos: .atLeastOnce, .init(number: number + 1)))
        }
        #expect(try link.takePayloads(phone) == ["0"])
        let other = try members(link, ["other"])[0]
        try link.send(phone, .unsubscribe(2, [Array(Self.group.utf8)]))
        #expect(try link.takePayloads(other) == ["2"])
        link.lose(phone)
        #expect(link.shard.figures.queued == 4, "three of the phone's, one of the other's")
        let again = try link.connect("phone", cleanSession: false)
        try link.send(again, .puback(1))
        #expect(
            try link.take(again) == [
                .publish("own", "1", qos: .atLeastOnce, 2), .publish("zero", "3"),
            ])
        try link.send(again, .puback(2))
        #expect(try link.take(again) == [.publish("own", "5", qos: .atLeastOnce, 6)])
        #expect(link.shard.counters.dropped[.offline] == 0)
    }
}
