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
            guard !packets.isEmpty else { return false }
            clear()
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

    @Test("an app that does not acknowledge holds suspects back for 10 s, not for good")
    func gateOpens() throws {
        var client = try Driver()
        client.connect()
        try client.publish([1])
        client.transportClosed()
        client.connect(sessionPresent: true)
        client.receive(Packets.publish([9], identifier: 1))
        client.receive(Packets.pingresp)
        client.clear()
        client.pass(9_999)
        #expect(client.payloads == [])
        client.pass(1)
        #expect(client.payloads == [[1]])
    }

    @Test(
        "a reset, a failed write, a network that breaks and a link that is silent refuse nothing",
        arguments: [
            DropReason.resetByPeer, .writeFailed, .networkFailure, .untrusted("a reason"),
        ])
    func abruptEnds(reason: DropReason) throws {
        var client = try Driver()
        client.connect()
        try client.publish([1])
        for _ in 0..<5 {
            client.clear()
            client.transportClosed(reason)
            if client.retryDelay != nil || client.machine.openingNumber != nil {
                client.connect(sessionPresent: true)
            }
            client.receive(Packets.pingresp)
            #expect(client.payloads == [[1]])
            #expect(client.machine.stored.outbox.held == [])
        }
        client.receive(Packets.puback(client.identifier()))
        #expect(client.machine.stored.outbox.count == 0)
    }

    @Test("a link that is silent refuses nothing")
    func silence() throws {
        var client = try Driver()
        client.connect()
        try client.publish([1])
        for _ in 0..<4 {
            client.call { $0.networkChanged(to: [1], at: $1) }
            client.pass(3_000)
            client.clear()
            client.connect(sessionPresent: true)
            #expect(client.payloads == [[1]])
        }
        #expect(client.machine.stored.outbox.held == [])
    }

    @Test("the sixth reset upon one publication, alone each time, holds it back")
    func manyResets() throws {
        var client = try Driver()
        client.connect()
        try client.publish([1])
        for _ in 0..<6 {
            client.transportClosed(.resetByPeer)
            client.connect(sessionPresent: true)
            client.receive(Packets.pingresp)
        }
        #expect(client.machine.stored.outbox.held.map(\.payload) == [[1]])
    }

    @Test("a close is no refusal when the broker is not there next: it was killed")
    func killedBroker() throws {
        var client = try Driver()
        client.connect()
        try client.publish([1])
        for _ in 0..<4 {
            client.transportClosed()
            client.pass(try #require(client.retryDelay))
            client.transportClosed(.connectionRefused)
            client.clear()
            client.connect(sessionPresent: true)
            client.receive(Packets.pingresp)
            #expect(client.payloads == [[1]])
        }
        #expect(client.machine.stored.outbox.held == [])
    }

    @Test("a connection that ends before a suspect was sent clears all suspects")
    func endBefore() throws {
        var client = try Driver()
        client.connect()
        try client.publish([1])
        try client.publish([2])
        client.transportClosed()
        client.connect(sessionPresent: true)
        #expect(client.sent.last == .pingreq)
        client.transportClosed()
        client.clear()
        client.connect(sessionPresent: true)
        #expect(client.payloads == [[1], [2]])
        client.transportClosed()
        client.connect(sessionPresent: true)
        #expect(client.machine.stored.outbox.held == [])
    }

    @Test("a message that the broker takes clears itself; the next one goes alone too")
    func exactlyOnce() throws {
        var client = try Driver()
        client.connect()
        try client.publish([1], qos: .exactlyOnce)
        try client.publish([2], qos: .exactlyOnce)
        client.transportClosed()
        client.connect(sessionPresent: true)
        client.clear()
        client.receive(Packets.pingresp)
        #expect(client.payloads == [[1]])
        let identifier = client.identifier()
        client.receive(Packets.pubrec(identifier))
        // PUBREL alone is under way: this close is no refusal of the first message.
        client.transportClosed()
        client.clear()
        client.connect(sessionPresent: true)
        client.receive(Packets.pubcomp(identifier))
        #expect(client.payloads == [[2]])
        #expect(client.machine.stored.outbox.held == [])
    }

    @Test("messages of one topic are held back and sent in their order")
    func oneTopic() throws {
        var client = try Driver()
        client.connect()
        for number in UInt8(1)...3 { try client.publish([number], topic: "f") }
        try client.publish([9], topic: "t")
        var closes = 0
        while client.serve(forbidding: [1]) {
            closes += 1
            client.connect(sessionPresent: true)
        }
        #expect(closes == 2)
        try client.publish([4], topic: "f")
        #expect(client.machine.stored.outbox.held.map(\.payload) == [[1], [2], [3], [4]])
        #expect(client.machine.stored.outbox.messages.isEmpty)
        #expect(try client.restarted().machine.stored == client.machine.stored)
        client.clear()
        client.pass(5_000)
        client.receive(Packets.pingresp)
        #expect(client.payloads == [[1]])
        // The rights have come back.
        client.receive(Packets.puback(client.identifier()))
        #expect(client.payloads == [[1], [2], [3], [4]])
        #expect(client.machine.stored.outbox.held == [])
    }

    @Test("a message of QoS 0 that closes the connection is no take-over")
    func atMostOnce() throws {
        var client = try Driver()
        client.connect()
        for _ in 0..<5 {
            client.pass(5_000)
            try client.publish([1], qos: .atMostOnce)
            client.transportClosed()
            #expect(client.machine.openingNumber == nil, "it does not look")
            client.connect(sessionPresent: true)
        }
        #expect(
            !client.states.contains {
                if case .waiting(_, .takenOver) = $0 { true } else { false }
            })
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
        try client.publish([1], topic: "other")
        let isClosed = client.serve(forbidding: forbidden)
        #expect(!isClosed)
        #expect(client.machine.stored.outbox.held.map(\.payload) == [forbidden])
        #expect(try client.restarted().machine.stored == client.machine.stored)
    }

    @Test("it is tried again after 5 s, and then after four times as long; told once")
    func triedAgain() throws {
        var client = try Driver()
        client.connect()
        try client.publish(forbidden)
        while client.serve(forbidding: forbidden) { client.connect(sessionPresent: true) }
        var told = 0
        for seconds in [Int64(5), 20, 80, 320] {
            let begin = client.now
            var passed = false
            while client.now - begin < seconds * 1_000 + 5_000, !passed {
                client.pass(100)
                told += client.events.count {
                    if case .publishRefused = $0 { true } else { false }
                }
                passed = client.serve(forbidding: forbidden)
            }
            #expect(passed)
            #expect(abs(client.now - begin - seconds * 1_000) <= 100)
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

    @Test("a report is never in the outbox, and one that is refused waits for hours, then a day")
    func report() throws {
        var client = try Driver()
        client.connect()
        var sent = 0
        var closes = 0
        var told = 0
        for _ in 0..<48 * 720 {
            client.pass(5_000)
            told += client.events.count {
                if case .publishRefused(topic: [1]) = $0 { true } else { false }
            }
            let isDue = client.actions.contains(.reportDue)
            if client.sent.isEmpty { client.clear() }
            if isDue { client.call { $0.sendReport(forbidden, topic: [1], at: $1) } }
            sent += client.payloads.count
            if client.serve(forbidding: forbidden) {
                closes += 1
                client.connect(sessionPresent: true)
            }
            try #require(client.machine.isConnected)
            #expect(client.machine.stored.outbox.count == 0)
        }
        // Twice, then after 1, 4, 16 and 24 hours.
        #expect((4...6).contains(closes) && closes == sent, "\(closes) closes, \(sent) reports")
        #expect((3...5).contains(told))
    }
}
