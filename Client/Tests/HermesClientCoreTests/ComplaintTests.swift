import MQTTCodec
import Testing

@testable import HermesClientCore

/// Faults that users of other Swift clients report, each shown not to be here.
@Suite("Known faults of MQTT clients")
struct ComplaintTests {
    @Test("1: a lost connection is followed by another, a wanted disconnect by none")
    func reconnects() throws {
        var client = try Driver()
        client.connect()
        client.transportClosed(.networkFailure)
        client.pass(15_000)
        #expect(client.machine.openingNumber != nil)
        client.connect(sessionPresent: true)
        client.call { $0.stop(at: $1) }
        client.clear()
        client.transportClosed(.networkFailure)
        client.pass(10_000_000)
        #expect(client.opened == 0)
    }

    @Test("2: after a suspension the state is not \"connected\" on a dead socket")
    func suspension() throws {
        var client = try Driver()
        client.connect()
        // The system suspends the program without a word; its clock goes on.
        client.now += 3_600_000
        client.clear()
        client.call { $0.enteredForeground(at: $1) }
        #expect(client.states.last == .connecting(attempt: 1))
        #expect(client.closed == 1 && client.opened == 1)
    }

    @Test("3: a dead link is seen after the heartbeat and 10 s, though the app publishes")
    func deadLink() throws {
        var client = try Driver()
        client.connect()
        let begin = client.now
        while client.machine.isConnected {
            try client.publish([1])
            client.pass(1_000)
        }
        #expect(client.now - begin <= 131_000)
        #expect(client.events.contains(.dropped(.silent)))
    }

    @Test("4: publishing without a connection is an error at QoS 0 and no success at QoS 1")
    func offlinePublish() throws {
        var client = try Driver()
        client.start()
        #expect(throws: PublishError.notConnected) { try client.publish([1], qos: .atMostOnce) }
        let key = try client.publish([2])
        #expect(key != nil && client.published == [])
    }

    @Test("5: nothing is resent while the connection lives, and QoS 2 is published once")
    func resends() throws {
        var client = try Driver()
        client.connect()
        try client.publish([1], qos: .exactlyOnce)
        client.clear()
        for _ in 0..<100 {
            client.pass(120_000)
            client.receive(Packets.pingresp)
        }
        #expect(client.sent.allSatisfy { $0 == .pingreq })
        client.receive(Packets.pubrec(client.identifier()))
        client.transportClosed(.networkFailure)
        client.clear()
        client.connect(sessionPresent: true)
        #expect(client.sent.dropFirst() == [.pubrel(client.identifier())])
    }

    @Test("6: the session's state outlives the connection and the program")
    func sessionState() throws {
        var client = try Driver()
        client.connect()
        try client.subscribe("a")
        client.answerSubscription()
        try client.publish([1], qos: .exactlyOnce)
        client.receive(Packets.publish([9], qos: 2, identifier: 3))
        client.acknowledge(client.takeAll()[0].number)
        client = try client.restarted()
        client.connect(sessionPresent: true)
        guard case .publish([1], 2, _, true)? = client.sent.last else {
            Issue.record("\(client.sent)")
            return
        }
        client.receive(Packets.publish([9], qos: 2, identifier: 3, isDuplicate: true))
        #expect(client.takeAll() == [])
        #expect(client.sent.last == .pubrec(3))
    }

    @Test("7: the app learns whether the session was present, and subscriptions are renewed")
    func sessionPresent() throws {
        var client = try Driver()
        client.connect()
        try client.subscribe("a")
        client.answerSubscription()
        client.transportClosed()
        client.clear()
        client.connect(sessionPresent: false)
        #expect(client.states.contains(.connected(sessionPresent: false)))
        #expect(client.events == [.sessionLost])
        guard case .subscribe(_, ["a"])? = client.sent.last else {
            Issue.record("\(client.sent)")
            return
        }
    }

    @Test("8: messages that come together with CONNACK wait for the app")
    func resumed() throws {
        var client = try Driver()
        client.start()
        client.transportOpened()
        client.receive(Packets.connack(sessionPresent: true), Packets.publish([1]))
        #expect(client.sent.count == 1)
        #expect(client.takeAll().map(\.payload) == [[1]])
    }

    @Test("9: nothing is acknowledged before the app has acknowledged it")
    func acknowledgement() throws {
        var client = try Driver()
        client.connect()
        client.clear()
        client.receive(
            Packets.publish([1], qos: 1, identifier: 1), Packets.publish([2], qos: 2, identifier: 2)
        )
        let messages = client.takeAll()
        client.pass(100_000)
        #expect(client.sent == [])
        for message in messages { client.acknowledge(message.number) }
        #expect(client.sent == [.puback(1), .pubrec(2)])
    }

    @Test("11: a hundred thousand messages in each direction leave nothing behind")
    func leak() throws {
        var client = try Driver()
        client.connect()
        for number in 0..<100_000 {
            let identifier = UInt16(number % 65_535 + 1)
            try client.publish([1])
            client.receive(
                Packets.puback(client.identifier()), Packets.publish([2], identifier: identifier))
            if let message = client.machine.takeMessage() { client.acknowledge(message.number) }
            client.clear()
        }
        #expect(client.machine.stored.outbox.messages.isEmpty)
        #expect(client.machine.inbox.unacknowledgedCount == 0)
        #expect(client.machine.inbox.arrivalCount == 0 && client.machine.inbox.bytes == 0)
        #expect(client.log.count < 100_000)
    }

    @Test("13: what was published offline leaves as soon as there is a connection, in order")
    func offlineMessages() throws {
        var client = try Driver()
        for number in UInt8(0)..<50 { try client.publish([number]) }
        client.connect()
        var payloads: [[UInt8]] = []
        var seen = 0
        while payloads.count < 50 {
            let packets = client.sent.dropFirst(seen)
            guard !packets.isEmpty else { break }
            seen += packets.count
            for case .publish(let payload, _, let identifier, false) in packets {
                payloads.append(payload)
                client.receive(Packets.puback(identifier))
            }
        }
        #expect(payloads == (UInt8(0)..<50).map { [$0] })
    }

    @Test("14: a length that never ends is seen, although the broker answers each PINGREQ")
    func endlessPacket() throws {
        for header: [UInt8] in [[0x30, 0xFF, 0xFF, 0x3F], [0x30], [0x30, 0x80]] {
            var client = try Driver()
            client.connect()
            let begin = client.now
            client.receive(bytes: header)
            while client.machine.isConnected, client.now - begin < 3_600_000 {
                let deadline = try #require(client.machine.nextDeadline)
                client.clear()
                client.pass(max(0, deadline - client.now))
                if client.sent.contains(.pingreq) { client.receive(Packets.pingresp) }
            }
            #expect(client.now - begin <= 120_000, "\(header)")
        }
    }

    @Test("15: every change of the network is acted on, and every state is told once, in order")
    func states() throws {
        var client = try Driver()
        client.connect()
        client.call { $0.networkChanged(to: nil, at: $1) }
        client.pass(3_000)
        client.transportClosed(.networkFailure)
        client.call { $0.networkChanged(to: [1], at: $1) }
        client.connect(sessionPresent: true)
        client.call { $0.enteredBackground(at: $1) }
        client.call { $0.stop(at: $1) }
        let waiting = client.states.filter { if case .waiting = $0 { true } else { false } }
        #expect(waiting.count == 1)
        #expect(
            client.states.filter { !waiting.contains($0) } == [
                .connecting(attempt: 1), .connected(sessionPresent: false),
                .connecting(attempt: 1), .connecting(attempt: 1),
                .connected(sessionPresent: true), .suspended, .stopped(.requested),
            ])
    }
}
