import MQTTCodec
import Testing

@testable import HermesClientCore

extension Driver {
    mutating func acknowledge(_ number: UInt64) { call { $0.acknowledge(number, at: $1) } }
}

@Suite("Receiving")
struct ReceivingTests {
    @Test("PUBACK and PUBREC follow the app's acknowledgement, in order of arrival")
    func order() throws {
        var client = try Driver()
        client.connect()
        client.receive(
            Packets.publish([1], qos: 1, identifier: 11),
            Packets.publish([2], qos: 2, identifier: 12),
            Packets.publish([3], qos: 1, identifier: 13))
        client.clear()
        let numbers = client.takeAll().map(\.number)
        client.acknowledge(numbers[1])
        client.acknowledge(numbers[2])
        #expect(client.sent == [])
        client.acknowledge(numbers[0])
        #expect(client.sent == [.puback(11), .pubrec(12), .puback(13)])
        client.clear()
        client.acknowledge(numbers[0])
        #expect(client.actions == [])
    }

    @Test("a message that the app does not acknowledge is named after a minute, and then rarely")
    func forgotten() throws {
        var client = try Driver()
        client.connect()
        client.receive(
            Packets.publish([1], topic: "a", identifier: 1),
            Packets.publish([2], topic: "b", identifier: 2))
        let numbers = client.takeAll().map(\.number)
        func reminders() -> [ClientEvent] {
            client.events.filter { if case .unacknowledged = $0 { true } else { false } }
        }
        client.pass(59_999)
        #expect(reminders() == [])
        client.pass(1)
        let topic = Array("a".utf8)
        #expect(reminders() == [.unacknowledged(topic: topic, milliseconds: 60_000, count: 2)])
        client.clear()
        client.pass(60_000)
        #expect(reminders() == [.unacknowledged(topic: topic, milliseconds: 120_000, count: 2)])
        client.receive(Packets.pingresp)
        client.acknowledge(numbers[0])
        client.clear()
        client.pass(1)
        #expect(
            reminders()
                == [
                    .unacknowledged(
                        topic: Array("b".utf8), milliseconds: 120_000, count: 1)
                ])
        client.acknowledge(numbers[1])
        client.clear()
        client.pass(60_000)
        #expect(reminders() == [])
    }

    @Test("an acknowledgement of QoS 2 is stored before PUBREC leaves")
    func stored() throws {
        var client = try Driver()
        client.connect()
        client.receive(Packets.publish([1], qos: 2, identifier: 5))
        client.clear()
        client.acknowledge(client.takeAll()[0].number)
        guard client.actions.count == 2, case .store = client.actions[0],
            case .write = client.actions[1]
        else {
            Issue.record("\(client.actions)")
            return
        }
        client.clear()
        client.receive(Packets.pubrel(5))
        #expect(client.sent == [.pubcomp(5)])
        #expect(client.machine.stored.received.isEmpty)
    }

    @Test("a message that the app has comes once, though the connection and the order change")
    func redelivery() throws {
        var client = try Driver()
        client.connect()
        client.receive(
            Packets.publish([1], qos: 1, identifier: 1),
            Packets.publish([2], qos: 2, identifier: 2),
            Packets.publish([3], qos: 2, identifier: 3))
        let numbers = client.takeAll().map(\.number)
        client.transportClosed()
        client.acknowledge(numbers[1])
        client.connect(sessionPresent: true)
        client.clear()
        client.receive(
            Packets.publish([1], qos: 1, identifier: 1, isDuplicate: true),
            Packets.publish([2], qos: 2, identifier: 2, isDuplicate: true),
            Packets.publish([3], qos: 2, identifier: 3, isDuplicate: true))
        #expect(client.takeAll() == [])
        #expect(client.sent == [])
        client.acknowledge(numbers[0])
        #expect(client.sent == [.puback(1), .pubrec(2)])
        client.acknowledge(numbers[2])
        #expect(client.sent.last == .pubrec(3))
    }

    @Test("an identifier that the broker uses for another message brings that message")
    func reused() throws {
        var client = try Driver()
        client.connect()
        client.receive(Packets.publish([1], qos: 2, identifier: 1))
        client.receive(Packets.publish([2], qos: 2, identifier: 2))
        client.acknowledge(client.takeAll()[0].number)
        client.transportClosed()
        client.connect(sessionPresent: true)
        client.receive(
            Packets.publish([7], qos: 2, identifier: 1), Packets.publish([8], qos: 2, identifier: 2)
        )
        #expect(client.takeAll().map(\.payload) == [[7], [8]])
    }

    @Test("after a lost session nothing is joined by its identifier")
    func lostSession() throws {
        var client = try Driver()
        client.connect()
        client.receive(Packets.publish([1], qos: 2, identifier: 1))
        let number = client.takeAll()[0].number
        client.transportClosed()
        client.connect(sessionPresent: false)
        client.receive(Packets.publish([1], qos: 2, identifier: 1))
        #expect(client.takeAll().count == 1)
        client.clear()
        client.acknowledge(number)
        #expect(client.sent == [])
    }

    @Test("when the session may be new, only DUP makes a message a redelivery")
    func uncertainSession() throws {
        var client = try Driver()
        client.connect()
        client.receive(
            Packets.publish([1], qos: 2, identifier: 1), Packets.publish([2], identifier: 2))
        client.acknowledge(client.takeAll()[0].number)
        client.transportClosed()
        client.pass(client.retryDelay ?? 0)
        client.transportOpened()
        // The broker begins a new session, which has the same messages by chance.
        client.transportClosed(.networkFailure)
        client.connect(sessionPresent: true)
        client.receive(
            Packets.publish([1], qos: 2, identifier: 1), Packets.publish([2], identifier: 2))
        #expect(client.takeAll().map(\.payload) == [[1], [2]])
    }

    @Test("a repeat by a timer is tolerated, another message under its identifier is not")
    func identifierInUse() throws {
        var client = try Driver()
        client.connect()
        client.receive(Packets.publish([1], identifier: 1))
        client.receive(Packets.publish([1], identifier: 1, isDuplicate: true))
        #expect(client.machine.isConnected)
        #expect(client.takeAll().count == 1)
        client.receive(Packets.publish([2], identifier: 1))
        let identifier = try #require(PacketIdentifier(1))
        #expect(client.events.last == .dropped(.violation(.identifierInUse(identifier))))
    }

    @Test("QoS 0 keeps the newest 256, and counts what it drops")
    func atMostOnce() throws {
        var client = try Driver()
        client.connect()
        client.receive(Packets.publish([], qos: 1, identifier: 9))
        for number in 0..<300 { client.receive(Packets.publish([UInt8(number % 250)], qos: 0)) }
        let messages = client.takeAll()
        #expect(messages.count == 257)
        #expect(messages[0].qos == .atLeastOnce)
        #expect(messages[1].payload == [44])
        #expect(client.machine.counters.droppedAtMostOnce == 44)
        #expect(client.machine.inbox.waitingCount == 0)
    }

    @Test("reading goes on while the app acknowledges nothing, and PINGRESP counts")
    func readingNeverStops() throws {
        var client = try Driver()
        client.connect()
        for identifier in UInt16(1)...20 {
            client.receive(Packets.publish([1], identifier: identifier))
        }
        client.pass(120_000)
        client.receive(Packets.pingresp)
        client.pass(60_000)
        #expect(client.machine.isConnected)
    }

    @Test("a broker that sends without bound is disconnected")
    func unbounded() throws {
        var client = try Driver()
        client.connect()
        for identifier in UInt16(1)...1_025 {
            client.receive(Packets.publish([1], identifier: identifier))
        }
        #expect(client.events.last == .dropped(.violation(.tooManyUnacknowledged)))
    }
}
