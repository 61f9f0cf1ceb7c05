import MQTTCodec
import Testing

@testable import HermesClientCore

extension Driver {
    /// Payloads of the PUBLISHes that were sent since the last ``clear()``.
    fileprivate var payloads: [[UInt8]] {
        sent.compactMap { if case .publish(let payload, _, _, _) = $0 { payload } else { nil } }
    }

    /// Answers PINGREQ and PUBLISH as a broker does that closes the connection upon the payload
    /// `forbidden`, until nothing more comes; true if it has closed.
    fileprivate mutating func serve(forbidding forbidden: [UInt8]) -> Bool {
        while true {
            let packets = sent
            clear()
            guard !packets.isEmpty else { return false }
            for packet in packets {
                switch packet {
                case .publish(forbidden, _, _, _):
                    transportClosed()
                    return true
                case .publish(_, 1, let identifier, _): receive(Packets.puback(identifier))
                case .publish(_, 2, let identifier, _): receive(Packets.pubrec(identifier))
                case .pubrel(let identifier): receive(Packets.pubcomp(identifier))
                case .pingreq: receive(Packets.pingresp)
                default: break
                }
            }
        }
    }
}

@Suite("Publications that the broker refuses by closing")
struct RefusalTests {
    private let forbidden: [UInt8] = [66]

    @Test("the second close holds the publication back, and all others arrive", arguments: 0..<5)
    func heldBack(place: Int) throws {
        var client = try Driver()
        client.connect()
        for number in 0..<5 {
            try client.publish(
                number == place ? forbidden : [UInt8(number)], topic: number == place ? "f" : "t")
        }
        var refusals: [ClientEvent] = []
        var closes = 0
        while client.serve(forbidding: forbidden) {
            closes += 1
            try #require(closes < 4)
            client.connect(sessionPresent: true)
            refusals += client.events.filter { if case .dropped = $0 { false } else { true } }
        }
        #expect(closes == 2)
        #expect(client.machine.isConnected)
        #expect(refusals == [.publishRefused(topic: Array("f".utf8))])
        #expect(client.machine.stored.outbox.messages.isEmpty)
        #expect(client.machine.stored.outbox.held.map(\.payload) == [forbidden])
    }

    @Test("what the broker has for the app is acknowledged before a suspect is sent again")
    func inboundFirst() throws {
        var client = try Driver()
        client.connect()
        try client.publish(forbidden)
        client.transportClosed()
        client.connect(sessionPresent: true)
        client.receive(Packets.publish([1], identifier: 1), Packets.publish([2], identifier: 2))
        client.clear()
        client.receive(Packets.pingresp)
        let messages = client.takeAll()
        client.acknowledge(messages[0].number)
        #expect(client.payloads == [])
        client.acknowledge(messages[1].number)
        client.receive(Packets.publish([3], identifier: 3))
        client.receive(Packets.pingresp)
        #expect(client.payloads == [])
        client.acknowledge(client.takeAll()[0].number)
        client.receive(Packets.pingresp)
        #expect(client.payloads == [forbidden])
    }

    @Test("an app that does not acknowledge holds publications back for 30 s, not for good")
    func gateOpens() throws {
        var client = try Driver()
        client.connect()
        try client.publish([1])
        client.transportClosed()
        client.connect(sessionPresent: true)
        client.receive(Packets.publish([9], identifier: 1))
        client.receive(Packets.pingresp)
        client.clear()
        client.pass(30_000)
        #expect(client.payloads == [[1]])
    }

    @Test("a message that is held back stays so across a kill, and is no take-over")
    func afterKill() throws {
        var client = try Driver()
        client.connect()
        try client.publish(forbidden)
        while client.serve(forbidding: forbidden) { client.connect(sessionPresent: true) }
        #expect(
            !client.states.contains {
                if case .waiting(_, .takenOver) = $0 { true } else { false }
            })
        client = try client.restarted()
        client.connect(sessionPresent: true)
        try client.publish([1])
        let isClosed = client.serve(forbidding: forbidden)
        #expect(!isClosed)
        #expect(client.machine.stored.outbox.held.map(\.payload) == [forbidden])
        #expect(try client.restarted().machine.stored == client.machine.stored)
    }

    @Test("it is tried again after 10 minutes, and then after twice as long; told once")
    func triedAgain() throws {
        var client = try Driver()
        client.connect()
        try client.publish(forbidden)
        while client.serve(forbidding: forbidden) { client.connect(sessionPresent: true) }
        var told = 0
        for minutes in [Int64(10), 20, 40] {
            let begin = client.now
            var passed = false
            while client.now - begin < minutes * 60_000 + 30_000, !passed {
                client.pass(1_000)
                told += client.events.count {
                    if case .publishRefused = $0 { true } else { false }
                }
                passed = client.serve(forbidding: forbidden)
            }
            #expect(passed)
            #expect(abs(client.now - begin - minutes * 60_000) < 30_000)
            client.connect(sessionPresent: true)
        }
        #expect(told == 0)
        // The rights have come back.
        client.clear()
        client.pass(0)
        let key = try #require(client.machine.stored.outbox.held.first?.key)
        client.call { _ = $0.retry(key, at: $1) }
        let isClosed = client.serve(forbidding: [0])
        #expect(!isClosed)
        #expect(client.machine.stored.outbox.count == 0)
    }

    @Test("a message that waits or is held back can be discarded", arguments: [true, false])
    func discarded(isHeld: Bool) throws {
        var client = try Driver()
        client.connect()
        let key = try #require(try client.publish(forbidden))
        if isHeld {
            while client.serve(forbidding: forbidden) { client.connect(sessionPresent: true) }
        }
        let identifier = client.machine.stored.outbox[key]?.identifier.rawValue ?? 0
        client.call { _ = $0.discard(key, at: $1) }
        #expect(client.machine.stored.outbox.count == 0)
        #expect(client.machine.stored.outbox.bytes == 0)
        if !isHeld { client.receive(Packets.puback(identifier)) }
        #expect(client.machine.isConnected)
        #expect(try client.restarted().machine.stored.outbox.count == 0)
    }

    @Test("a discarded message of QoS 2 that was sent keeps its identifier until PUBCOMP")
    func discardedExactlyOnce() throws {
        var client = try Driver()
        client.connect()
        let key = try #require(try client.publish([1], qos: .exactlyOnce))
        let identifier = client.identifier()
        client.clear()
        client.call { _ = $0.discard(key, at: $1) }
        #expect(client.sent == [.pubrel(identifier)])
        client.receive(Packets.pubrec(identifier))
        client.receive(Packets.pubcomp(identifier))
        #expect(client.machine.stored.outbox.count == 0)
        #expect(client.machine.isConnected)
    }

    @Test("a report is never in the outbox, and one that is refused is not sent for a day")
    func report() throws {
        var client = try Driver()
        client.connect()
        var sent = 0
        var closes = 0
        var told = 0
        for hour in 0..<48 {
            client.clear()
            client.pass(0)
            client.now += 1
            // Only the report counts here, not the heartbeat.
            for _ in 0..<60 {
                client.pass(60_000)
                if client.actions.contains(.reportDue) {
                    client.clear()
                    client.call { $0.sendReport(forbidden, topic: [1], at: $1) }
                    sent += client.payloads.count
                }
                told += client.events.count {
                    if case .publishRefused(topic: [1]) = $0 { true } else { false }
                }
                if client.serve(forbidding: forbidden) {
                    closes += 1
                    told += client.events.count {
                        if case .publishRefused(topic: [1]) = $0 { true } else { false }
                    }
                    client.connect(sessionPresent: true)
                }
            }
            #expect(client.machine.stored.outbox.count == 0, "hour \(hour)")
        }
        #expect((2...4).contains(closes) && closes == sent, "\(closes) closes, \(sent) reports")
        #expect((1...2).contains(told))
    }
}
