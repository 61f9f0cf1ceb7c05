import MQTTCodec
import Testing

@testable import HermesClientCore

extension Driver {
    @discardableResult
    mutating func publish(
        _ payload: [UInt8], qos: QoS = .atLeastOnce, topic: String = "t"
    ) throws(PublishError) -> UInt64? {
        try call { machine, moment throws(PublishError) in
            try machine.publish(
                topic: Array(topic.utf8), payload: payload, qos: qos, at: moment)
        }
    }

    /// The identifier of the message at this place of the outbox.
    func identifier(_ index: Int = 0) -> UInt16 {
        machine.stored.outbox.messages[index].identifier.rawValue
    }
}

@Suite("Publishing")
struct PublishingTests {
    @Test("a message is stored before it is sent, and finished by PUBACK")
    func atLeastOnce() throws {
        var client = try Driver()
        client.connect()
        client.clear()
        let key = try client.publish([1])
        guard client.actions.count == 2, case .store = client.actions[0],
            case .write = client.actions[1]
        else {
            Issue.record("\(client.actions)")
            return
        }
        let identifier = client.identifier()
        #expect(
            client.sent == [
                .publish(payload: [1], qos: 1, identifier: identifier, isDuplicate: false)
            ])
        client.clear()
        client.receive(Packets.puback(identifier))
        #expect(client.published == [key])
        #expect(try client.restarted().machine.stored.outbox.messages.isEmpty)
    }

    @Test("QoS 2 stores each step before it goes on")
    func exactlyOnce() throws {
        var client = try Driver()
        client.connect()
        try client.publish([1], qos: .exactlyOnce)
        let identifier = client.identifier()
        client.clear()
        client.receive(Packets.pubrec(identifier))
        #expect(client.storedRecords == [[.released(1)]])
        guard case .store? = client.actions.first else {
            Issue.record("\(client.actions)")
            return
        }
        #expect(client.sent == [.pubrel(identifier)])
        #expect(client.published == [])
        client.clear()
        client.receive(Packets.pubcomp(identifier))
        #expect(client.storedRecords == [[.finished(1)]])
        #expect(client.published == [1])
    }

    @Test("20 messages are in flight, the next follows an acknowledgement, in order")
    func window() throws {
        var client = try Driver()
        client.connect()
        client.clear()
        for number in UInt8(0)..<30 { try client.publish([number]) }
        #expect(client.sent.count == 20)
        let second = client.identifier(1)
        client.clear()
        client.receive(Packets.puback(second))
        #expect(client.sent.count == 1)
        guard case .publish([20], 1, _, false)? = client.sent.first else {
            Issue.record("\(client.sent)")
            return
        }
    }

    @Test("what is not acknowledged is resent only after CONNACK with a session, with DUP")
    func resend() throws {
        var client = try Driver()
        client.connect()
        try client.publish([1])
        try client.publish([2], qos: .exactlyOnce)
        try client.publish([3], qos: .exactlyOnce)
        let identifiers = (0..<3).map { client.identifier($0) }
        client.receive(Packets.pubrec(identifiers[2]))
        client.transportClosed(.networkFailure)
        client.clear()
        try client.publish([4])
        client.pass(15_000)
        client.transportOpened()
        #expect(client.sent == [.connect(keepAlive: 150, userName: nil)])
        client.clear()
        client.receive(Packets.connack(sessionPresent: true))
        #expect(
            client.sent == [
                .publish(payload: [1], qos: 1, identifier: identifiers[0], isDuplicate: true),
                .publish(payload: [2], qos: 2, identifier: identifiers[1], isDuplicate: true),
                .pubrel(identifiers[2]),
                .publish(
                    payload: [4], qos: 1, identifier: client.identifier(3), isDuplicate: false),
            ])
    }

    @Test("a kill loses nothing of it: the same resends follow from the log")
    func resendAfterKill() throws {
        var client = try Driver()
        client.connect()
        try client.publish([1], qos: .exactlyOnce)
        try client.publish([2], qos: .exactlyOnce)
        let identifiers = (0..<2).map { client.identifier($0) }
        client.receive(Packets.pubrec(identifiers[1]))
        client = try client.restarted()
        client.connect(sessionPresent: true)
        #expect(
            client.sent.dropFirst() == [
                .publish(payload: [1], qos: 2, identifier: identifiers[0], isDuplicate: true),
                .pubrel(identifiers[1]),
            ])
    }

    @Test("after a lost session messages are published anew, but none that had its PUBREC")
    func lostSession() throws {
        var client = try Driver()
        client.connect()
        try client.publish([1], qos: .exactlyOnce)
        try client.publish([2], qos: .exactlyOnce)
        let identifiers = (0..<2).map { client.identifier($0) }
        client.receive(Packets.pubrec(identifiers[0]))
        client.transportClosed(.networkFailure)
        client.clear()
        client.connect(sessionPresent: false)
        #expect(
            client.sent.dropFirst() == [
                .publish(payload: [2], qos: 2, identifier: identifiers[1], isDuplicate: false)
            ])
        #expect(client.published == [1])
        #expect(client.events == [.sessionLost])
    }

    @Test("the outbox has room for 1,000 messages and 8 MiB, and then says so")
    func limits() throws {
        var client = try Driver()
        for _ in 0..<1_000 { try client.publish([]) }
        #expect(throws: PublishError.outboxFull) { try client.publish([]) }
        client = try Driver()
        let large = [UInt8](repeating: 1, count: 1_000_000)
        for _ in 0..<8 { try client.publish(large) }
        #expect(throws: PublishError.outboxFull) { try client.publish(large) }
    }

    @Test("a message that no broker may get is refused, with the reason")
    func refused() throws {
        var client = try Driver()
        #expect(throws: PublishError.topic(.wildcardInTopicName)) {
            try client.publish([], topic: "a/#")
        }
        #expect(throws: PublishError.topic(.emptyTopic)) { try client.publish([], topic: "") }
        let size = 1 << 20
        #expect(throws: PublishError.tooLarge(bytes: size + 9, limit: size)) {
            try client.publish([UInt8](repeating: 0, count: size))
        }
        #expect(throws: PublishError.topic(.truncated)) {
            try client.publish([], topic: String(repeating: "a", count: 65_536))
        }
        #expect(client.log.isEmpty)
    }

    @Test("acknowledgements for nothing that is under way end the connection")
    func unexpected() throws {
        let wrong: [(PacketType, (UInt16) -> [UInt8])] = [
            (.puback, Packets.puback), (.pubrec, Packets.pubrec), (.pubcomp, Packets.pubcomp),
        ]
        for (type, packet) in wrong {
            for qos in [QoS.atLeastOnce, .exactlyOnce] {
                var client = try Driver()
                client.connect()
                try client.publish([1], qos: qos)
                // PUBACK belongs to QoS 1, PUBREC to QoS 2, and PUBCOMP to what had its PUBREC.
                let fits =
                    (type == .puback && qos == .atLeastOnce)
                    || (type == .pubrec && qos == .exactlyOnce)
                let identifier = try #require(
                    PacketIdentifier(fits ? client.identifier() ^ 0x5555 : client.identifier()))
                client.receive(packet(identifier.rawValue))
                #expect(
                    client.events
                        == [.dropped(.violation(.unexpectedAcknowledgement(type, identifier)))])
                #expect(client.machine.stored.outbox.messages.count == 1)
            }
        }
    }

    @Test("the log stays short, and holds what the client knows")
    func flat() throws {
        var client = try Driver()
        client.connect()
        var longest = 0
        for _ in 0..<20_000 {
            try client.publish([1, 2, 3])
            client.receive(Packets.puback(client.identifier()))
            longest = max(longest, client.log.count)
            client.clear()
        }
        #expect(client.machine.stored.outbox.messages.isEmpty)
        #expect(client.machine.stored.outbox.bytes == 0)
        #expect(longest < 100_000)
        #expect(try client.restarted().machine.stored == client.machine.stored)
    }

    @Test("no message gets the identifier of a request that is under way")
    func identifiers() throws {
        var client = try Driver()
        client.connect()
        try client.subscribe("a")
        let request = client.sent.last?.identifier
        // The broker answers PINGREQ and PUBLISH, so that the request alone stays open.
        for _ in 0..<70_000 {
            try client.publish([])
            #expect(client.identifier() != request)
            client.receive(Packets.puback(client.identifier()))
            client.clear()
        }
    }

    @Test("programs that live briefly do not let the log grow")
    func briefLives() throws {
        var client = try Driver()
        for _ in 0..<200 {
            client = try client.restarted()
            client.connect(sessionPresent: true)
            for _ in 0..<30 {
                try client.publish([UInt8](repeating: 1, count: 100))
                client.receive(Packets.puback(client.identifier()))
            }
        }
        #expect(client.log.count < 100_000)
    }
}
