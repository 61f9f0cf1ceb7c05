import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

@Suite("Shared subscriptions in a shard")
struct SharedSubscriptionTests {
    private func members(
        _ link: ShardLink, _ names: [String], qos: QoS = .exactlyOnce, cleanSession: Bool = true
    ) throws -> [Handle] {
        try names.map { name in
            let handle = try link.connect(name, cleanSession: cleanSession)
            try link.send(handle, .subscribe("$share/g/jobs/#", qos))
            #expect(try link.take(handle) == [.suback(1, [qos.rawValue])])
            return handle
        }
    }

    private func payloads(_ packets: [PacketContent]) -> [String] {
        packets.compactMap { packet in
            guard case .publish(let publish) = packet else { return nil }
            return String(decoding: publish.payload, as: UTF8.self)
        }
    }

    @Test("each message goes to one member, in turn", arguments: [QoS.atMostOnce, .atLeastOnce])
    func turns(qos: QoS) throws {
        let link = ShardLink()
        let members = try members(link, ["a", "b", "c"])
        let publisher = try link.connect("publisher")
        for number in 1...6 {
            let identifier = try #require(PacketIdentifier(UInt16(number)))
            try link.send(publisher, .publish("jobs/x", "\(number)", qos: qos, identifier))
        }
        let received = try members.map { payloads(try link.take($0)) }
        #expect(received == [["1", "4"], ["2", "5"], ["3", "6"]])
    }

    @Test("a plain subscription beside it gets its own copy")
    func besidePlain() throws {
        let link = ShardLink()
        let member = try members(link, ["a"])[0]
        try link.send(member, .subscribe("jobs/x", .atMostOnce))
        _ = try link.take(member)
        let publisher = try link.connect("publisher")
        try link.send(publisher, .publish("jobs/x", "1"))
        #expect(payloads(try link.take(member)) == ["1", "1"])
    }

    @Test("no retained messages on subscribing")
    func noRetained() throws {
        let link = ShardLink()
        let publisher = try link.connect("publisher")
        try link.send(publisher, .publish("jobs/x", "old", retain: true))
        let member = try members(link, ["a"])[0]
        #expect(try link.take(member).isEmpty)
    }

    @Test(
        "a message that waits for its commit is handed over, and no member sees it before",
        arguments: [QoS.atMostOnce, .exactlyOnce], [1, 300])
    func handedOverBeforeCommit(memberQoS: QoS, count: Int) throws {
        let link = ShardLink(isImmediate: false)
        _ = try link.subscriber("stored", to: "jobs/#", .exactlyOnce)
        let members = try ["a", "b"].map {
            try link.subscriber($0, to: "$share/g/jobs/#", memberQoS, cleanSession: true)
        }
        let publisher = try link.connect("publisher")
        for number in 1...count {
            try link.send(
                publisher,
                .publish("jobs/x", "\(number)", qos: .exactlyOnce, .init(number: number)))
            try link.send(publisher, .pubrel(.init(number: number)))
        }
        link.lose(members[0])
        for _ in 1...4 { link.turn() }
        #expect(try link.takePayloads(members[1]) == [])
        link.commitAll()
        let received = try link.takeAll(members[1])
        #expect(received.count == count && Set(received).count == count)
    }

    @Test(
        "unacknowledged QoS 1 and waiting messages of a leaving member go to another")
    func handedOver() throws {
        let link = ShardLink({ $0.maxInFlight = 2 })
        let members = try members(link, ["a", "b"])
        try link.send(members[1], .unsubscribe(2, [Array("$share/g/jobs/#".utf8)]))
        _ = try link.take(members[1])
        let publisher = try link.connect("publisher")
        for number in 1...4 {
            let identifier = try #require(PacketIdentifier(UInt16(number)))
            try link.send(publisher, .publish("jobs/x", "\(number)", qos: .atLeastOnce, identifier))
        }
        #expect(payloads(try link.take(members[0])) == ["1", "2"])
        try link.send(members[0], .puback(1))
        #expect(payloads(try link.take(members[0])) == ["3"])
        try link.send(members[1], .subscribe("$share/g/jobs/#", .exactlyOnce))
        _ = try link.take(members[1])
        link.lose(members[0])
        #expect(payloads(try link.take(members[1])) == ["2", "3"])
        try link.send(members[1], .puback(1), .puback(2))
        #expect(payloads(try link.take(members[1])) == ["4"])
    }

    @Test("sent QoS 2 messages stay with their receiver, which may have them")
    func notTwice() throws {
        let link = ShardLink()
        let members = try members(link, ["a", "b"])
        let publisher = try link.connect("publisher")
        try link.send(publisher, .publish("jobs/x", "1", qos: .exactlyOnce, 1))
        #expect(payloads(try link.take(members[0])) == ["1"])
        link.lose(members[0])
        #expect(try link.take(members[1]).isEmpty)
    }

    @Test(
        "[MQTT-3.10.4-3] after UNSUBSCRIBE sent messages stay with their receiver; waiting ones go to others"
    )
    func unsubscribing() throws {
        let link = ShardLink({ $0.maxInFlight = 1 })
        let members = try members(link, ["a", "b"])
        let publisher = try link.connect("publisher")
        link.lose(members[1])
        for number in 1...3 {
            let identifier = try #require(PacketIdentifier(UInt16(number)))
            try link.send(publisher, .publish("jobs/x", "\(number)", qos: .atLeastOnce, identifier))
        }
        let other = try self.members(link, ["c"])[0]
        #expect(payloads(try link.take(members[0])) == ["1"])
        try link.send(members[0], .unsubscribe(2, [Array("$share/g/jobs/#".utf8)]))
        #expect(try link.take(members[0]) == [.unsuback(2)])
        #expect(payloads(try link.take(other)) == ["2"])
        try link.send(other, .puback(1))
        #expect(payloads(try link.take(other)) == ["3"])
        try link.send(members[0], .puback(1))
        #expect(try link.take(members[0]).isEmpty)
    }

    @Test("without connected members, one persistent member keeps the message")
    func waits() throws {
        let link = ShardLink()
        let members = try members(link, ["a", "b"], cleanSession: false)
        for member in members { link.lose(member) }
        let publisher = try link.connect("publisher")
        try link.send(publisher, .publish("jobs/x", "1", qos: .atLeastOnce, 1))
        try link.send(publisher, .publish("jobs/x", "2", qos: .atLeastOnce, 2))
        #expect(link.shard.counters.dropped[.offline] == 0)
        try link.send(publisher, .publish("jobs/x", "lost"))
        #expect(link.shard.counters.dropped[.offline] == 1, "QoS 0 is lost, once for the group")
        var received: [[String]] = []
        for name in ["a", "b"] {
            let handle = link.open()
            var connect = PacketContent.Connect(clientID: name)
            connect.cleanSession = false
            try link.send(handle, .connect(connect))
            received.append(payloads(try link.take(handle)))
        }
        #expect(received == [["1"], ["2"]])
    }

    @Test("a member that has no room is passed over while another has some")
    func passedOver() throws {
        let link = ShardLink({ $0.maxInFlight = 1 })
        let members = try members(link, ["a", "b"])
        let publisher = try link.connect("publisher")
        for number in 1...2 {
            let identifier = try #require(PacketIdentifier(UInt16(number)))
            try link.send(publisher, .publish("jobs/x", "\(number)", qos: .atLeastOnce, identifier))
        }
        try link.send(members[1], .puback(1))
        try link.send(publisher, .publish("jobs/x", "3", qos: .atLeastOnce, 3))
        #expect(payloads(try link.take(members[0])) == ["1"])
        #expect(payloads(try link.take(members[1])) == ["2", "3"])
    }

    @Test("texts without a group or a filter are refused with 0x80")
    func refused() throws {
        let link = ShardLink()
        let handle = try link.connect("a")
        try link.send(handle, .subscribe("$share/g", .atLeastOnce))
        #expect(try link.take(handle) == [.suback(1, [0x80])])
    }
}
