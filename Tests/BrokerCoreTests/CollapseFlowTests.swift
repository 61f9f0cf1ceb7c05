import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Store
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// Messages that replace queued ones of the same collapse key.
@Suite("Collapse keys")
struct CollapseFlowTests {
    private static let tag: UInt8 = 14 << 3

    /// What a phone got: the text, the sequence and the sequences that it supersedes.
    private struct Update: Equatable {
        var text: String
        var sequence: UInt64 = 0
        var superseded: [UInt64] = []

        init(_ text: String, _ sequence: UInt64, _ superseded: [UInt64] = []) {
            (self.text, self.sequence, self.superseded) = (text, sequence, superseded)
        }

        /// Text without `p`, which is the tag, then fields of varints.
        init(_ payload: [UInt8]) {
            let end = payload.firstIndex(of: CollapseFlowTests.tag) ?? payload.endIndex
            text = String(decoding: payload[..<end], as: UTF8.self)
            var rest = payload[end...]
            while let tag = rest.popFirst() {
                var (number, shift): (UInt64, UInt64) = (0, 0)
                while let byte = rest.popFirst() {
                    number |= UInt64(byte & 0x7F) << shift
                    shift += 7
                    if byte < 128 { break }
                }
                if tag == CollapseFlowTests.tag {
                    sequence = number
                } else {
                    superseded.append(number)
                }
            }
        }
    }

    private func publish(
        _ text: String, key: UInt128?, _ link: ShardLink, qos: QoS = .atLeastOnce,
        topic: String = "t", hasSequence: Bool = true
    ) {
        var publication = Publication(
            topic: Array(topic.utf8), payload: Array(text.utf8), qos: qos,
            sequence: hasSequence
                ? SequenceStamp(channel: Array("c".utf8), tag: Self.tag) : nil)
        publication.collapseKey = key
        link.shard.publish(publication) { _ in }
        link.turn()
        link.commitAll()
    }

    private func addOffline(_ client: String, _ link: ShardLink) throws {
        let phone = try link.connect(client, cleanSession: false)
        try link.send(phone, .subscribe("t", .exactlyOnce), .disconnect)
        link.commitAll()
    }

    /// Connects, takes all messages and acknowledges them until none comes any more.
    private func receiveAll(_ client: String, _ link: ShardLink) throws -> [Update] {
        let phone = link.open()
        var connect = PacketContent.Connect(clientID: client)
        connect.cleanSession = false
        try link.send(phone, .connect(connect))
        link.commitAll()
        let updates = try drain(phone, link)
        try link.send(phone, .disconnect)
        link.commitAll()
        return updates
    }

    private func drain(_ phone: Handle, _ link: ShardLink) throws -> [Update] {
        var updates: [Update] = []
        for _ in 0..<1_000 {
            let packets = try link.take(phone)
            if packets.isEmpty { break }
            for packet in packets {
                guard case .publish(let publish) = packet else { continue }
                updates.append(Update(publish.payload))
                switch publish.delivery {
                case .atMostOnce: break
                case .atLeastOnce(let identifier, _): try link.send(phone, .puback(identifier))
                case .exactlyOnce(let identifier, _):
                    try link.send(phone, .pubrec(identifier), .pubcomp(identifier))
                }
            }
            link.turn()
            link.commitAll()
        }
        return updates
    }

    private func session(_ client: String, _ link: ShardLink) -> UInt32? {
        Array(client.utf8).withUnsafeBytes { link.shard.sessions.find($0) }
    }

    @Test("the newest of what waits remains, at the end, and names those that it replaced")
    func replaces() throws {
        let link = ShardLink(isImmediate: false)
        try addOffline("phone", link)
        publish("a1", key: 1, link)
        publish("b1", key: 2, link)
        publish("a2", key: 1, link)
        publish("other", key: nil, link)
        publish("a3", key: 1, link)
        publish("b1 of another topic", key: 2, link, topic: "u")
        #expect(
            try receiveAll("phone", link)
                == [Update("b1", 2), Update("other", 4), Update("a3", 5, [1, 3])])
        let replaced = link.shard.figures.dropped.first { $0.label == "replaced" }?.value
        #expect(replaced == 2)
        let (left, queued) = (link.shard.features.collapse.count, link.shard.figures.queued)
        #expect(left == 0 && queued == 0)
        #expect(try receiveAll("phone", link).isEmpty)
    }

    @Test("the end of the replaced message is in one group with the new one")
    func group() throws {
        let link = ShardLink(isImmediate: false)
        try addOffline("phone", link)
        publish("a1", key: 1, link, hasSequence: false)
        publish("a2", key: 1, link, hasSequence: false)
        let group = try #require(link.store.groups.last)
        let kinds = group.records.map { record in
            switch record {
            case .finished(_, let position): "finished \(position)"
            case .factRemoved(FactTable.collapsible.number, _, let key): "ended \(key[15])"
            case .horizon(_, let position): "horizon \(position)"
            case .message: "message"
            case .queued(_, let position, _, _, _, _): "queued \(position)"
            case .fact(let fact):
                fact.read { (fact) throws(DamagedFact) in try StoredCollapsible(fact) }
                    .map { "collapsible \($0.position) \($0.sequences)" } ?? "\(record)"
            default: "\(record)"
            }
        }
        #expect(
            kinds == [
                "ended 0", "finished 0", "horizon 1", "message", "queued 1", "collapsible 1 []",
            ])
        #expect(try receiveAll("phone", link) == [Update("a2", 0)])
    }

    @Test(
        "what is in flight stays, for a stored session and for a clean one",
        arguments: [true, false])
    func inFlight(cleanSession: Bool) throws {
        let link = ShardLink { $0.maxInFlight = 1 }
        let phone = try link.connect("phone", cleanSession: cleanSession)
        try link.send(phone, .subscribe("t", .exactlyOnce))
        _ = try link.take(phone)
        for text in ["a1", "a2", "a3"] { publish(text, key: 1, link) }
        #expect(try drain(phone, link) == [Update("a1", 1), Update("a3", 3, [2])])
        publish("a4", key: 1, link)
        #expect(try drain(phone, link) == [Update("a4", 4)])
        let left = link.shard.features.collapse.count
        #expect(left == 0)
    }

    @Test("each receiver can explain its holes, whatever the others had")
    func receivers() throws {
        let link = ShardLink()
        try addOffline("gone", link)
        let phone = try link.connect("here", cleanSession: false)
        try link.send(phone, .subscribe("t", .atLeastOnce))
        _ = try link.take(phone)
        publish("a1", key: 1, link)
        #expect(try drain(phone, link) == [Update("a1", 1)])
        publish("a2", key: 1, link)
        #expect(try drain(phone, link) == [Update("a2", 2, [1])])
        #expect(try receiveAll("gone", link) == [Update("a2", 2, [1])])
    }

    @Test("a message names 32 sequences at most; what would bring more is not replaced")
    func most() throws {
        let link = ShardLink()
        try addOffline("phone", link)
        for number in 1...40 { publish("\(number)", key: 1, link) }
        let updates = try receiveAll("phone", link)
        #expect(updates.map(\.text) == ["33", "40"])
        #expect(updates.first?.superseded == Array(1...32))
        #expect(updates.last?.superseded == Array(34...39))
    }

    @Test("the limit on collapse keys, and sessions that end, leave nothing behind")
    func limits() throws {
        let link = ShardLink { $0.collapsible = 1 }
        try addOffline("phone", link)
        for text in ["a1", "b1", "a2", "b2"] {
            publish(text, key: text.hasPrefix("a") ? 1 : 2, link)
        }
        let count = link.shard.features.collapse.count
        #expect(count == 1)
        _ = try link.connect("phone", cleanSession: true)
        link.turn()
        let left = link.shard.features.collapse.count
        #expect(left == 0)
    }

    @Test("a queue with holes keeps its limit, and drops its oldest messages")
    func queueLimit() throws {
        let link = ShardLink { $0.queueMessages = 5 }
        try addOffline("phone", link)
        publish("x", key: nil, link)
        for number in 1...20 { publish("a\(number)", key: 1, link, hasSequence: false) }
        for number in 1...6 { publish("y\(number)", key: nil, link) }
        let index = try #require(session("phone", link))
        let waiting = link.shard.sessions[index].outbound.waiting
        #expect(waiting == 5)
        #expect(
            try receiveAll("phone", link).map(\.text) == ["y2", "y3", "y4", "y5", "y6"])
    }

    @Test("holes that a queue in memory leaves to the store are no messages for its limit")
    func holesOfMemory() throws {
        let link = ShardLink {
            $0.maxInFlight = 1
            $0.queueMessages = 4
        }
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("t", .atLeastOnce))
        for text in ["x", "y1", "a1", "y2", "a2"] {
            publish(text, key: text.hasPrefix("a") ? 1 : nil, link, hasSequence: false)
        }
        link.lose(phone)
        link.commitAll()
        for text in ["y3", "y4", "y5"] { publish(text, key: nil, link, hasSequence: false) }
        #expect(
            try receiveAll("phone", link).map(\.text) == ["x", "a2", "y3", "y4", "y5"])
    }

    /// Random messages with and without keys, clients that come, go and acknowledge little: at the
    /// end each client has the last message of each key, nothing twice and in order, and every
    /// sequence that it lacks is named by a message that it has.
    @Test("histories", arguments: 1...60 as ClosedRange<UInt64>)
    func histories(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let isDurable = seed % 3 != 0
        let link = ShardLink(
            { $0.maxInFlight = 3 }, isImmediate: seed % 2 == 0, isDurable: isDurable)
        let names = ["one", "two"]
        var phones: [String: Handle] = [:]
        var got: [String: [Update]] = ["one": [], "two": []]
        var newest: [UInt128: String] = [:]
        for name in names { try addOffline(name, link) }
        var last = 0
        for _ in 1...120 {
            let name = Bool.random(using: &random) ? "one" : "two"
            switch Int.random(in: 1...10, using: &random) {
            case 1...6:
                last += 1
                let key = [nil, 1, 2, 3][Int.random(in: 0...3, using: &random)] as UInt128?
                if let key { newest[key] = "\(last)" }
                publish("\(last)", key: key, link)
            case 7...8:
                if let phone = phones.removeValue(forKey: name) {
                    // All that is sent is taken before, so that nothing is sent twice.
                    got[name]?.append(contentsOf: try drain(phone, link))
                    try link.send(phone, .disconnect)
                } else {
                    let phone = link.open()
                    var connect = PacketContent.Connect(clientID: name)
                    connect.cleanSession = false
                    try link.send(phone, .connect(connect))
                    phones[name] = phone
                }
                link.commitAll()
            default:
                guard let phone = phones[name] else { continue }
                got[name]?.append(contentsOf: try drain(phone, link))
            }
        }
        for name in names {
            if let phone = phones[name] {
                got[name]?.append(contentsOf: try drain(phone, link))
                try link.send(phone, .disconnect)
                link.commitAll()
            }
            let updates = (got[name] ?? []) + (try receiveAll(name, link))
            let sequences = updates.map(\.sequence)
            #expect(sequences == sequences.sorted() && Set(sequences).count == sequences.count)
            let explained = Set(updates.flatMap(\.superseded)).union(sequences)
            #expect(explained == Set((1...max(1, last)).map { UInt64($0) }))
            for text in newest.values { #expect(updates.contains { $0.text == text }) }
        }
        let (left, queued) = (link.shard.features.collapse.count, link.shard.figures.queued)
        #expect(left == 0 && queued == 0)
    }
}
