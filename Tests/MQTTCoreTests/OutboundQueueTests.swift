import HermesTesting
import MQTTCodec
import Testing

@testable import MQTTCore
@testable import Structures

/// A queue and an array with its expected content.
private struct QueueModel {
    enum State { case waiting, sent, released }

    struct Entry {
        var position: UInt64
        var payload: [UInt8]
        var qos: QoS
        var retain: Bool
        var ticket: UInt64
        var state = State.waiting
    }

    let owner: TestPool
    var queue: OutboundQueue
    var entries: [Entry] = []
    var end: UInt64
    /// Completed tickets, in any order.
    var committed: Set<UInt64> = []

    init(_ owner: TestPool, firstPosition: UInt64) {
        self.owner = owner
        queue = OutboundQueue(firstPosition: firstPosition)
        end = firstPosition
    }

    var inFlight: [Entry] { entries.filter { $0.state != .waiting } }
    var waiting: [Entry] { entries.filter { $0.state == .waiting } }

    mutating func append(_ payload: [UInt8], _ qos: QoS, retain: Bool, ticket: UInt64) {
        #expect(queue.end == end)
        queue.append(
            owner.message(payload: payload), qos: qos, retain: retain, ticket: ticket,
            pool: owner.pool)
        entries.append(
            Entry(position: end, payload: payload, qos: qos, retain: retain, ticket: ticket))
        end += 1
    }

    /// One step of sending; checks that exactly the model's next message is sent, if any may be.
    mutating func next(limit: UInt32, abandons: Bool, _ comment: Comment) {
        let index = entries.firstIndex { $0.state == .waiting }
        let result = queue.next(limit: limit, pool: owner.pool) { committed.contains($0) }
        guard let index else {
            guard case .nothing = result else {
                Issue.record("sent from an empty queue: \(comment)")
                return
            }
            return
        }
        let entry = entries[index]
        guard entry.ticket == 0 || committed.contains(entry.ticket) else {
            guard case .awaitsCommit = result else {
                Issue.record("left before its commit: \(comment)")
                return
            }
            return
        }
        guard entry.qos == .atMostOnce || inFlight.count < Int(limit) else {
            guard case .nothing = result else {
                Issue.record("left beyond the window: \(comment)")
                return
            }
            return
        }
        guard case .send(let item) = result else {
            Issue.record("did not leave: \(comment)")
            return
        }
        check(item, entry, comment)
        if abandons {
            queue.abandon(item, pool: owner.pool)
            entries.remove(at: index)
        } else if entry.qos == .atMostOnce {
            item.message.release(in: owner.pool)
            entries.remove(at: index)
        } else {
            entries[index].state = .sent
        }
    }

    func check(_ item: OutboundQueue.Item, _ entry: Entry, _ comment: Comment) {
        #expect(item.position == entry.position, comment)
        #expect([UInt8](item.message.payload) == entry.payload, comment)
        #expect(item.qos == entry.qos && item.retain == entry.retain, comment)
        #expect(item.packetIdentifier == PacketIdentifier(position: entry.position), comment)
    }

    /// Handles PUBACK, PUBREC or PUBCOMP with any identifier and compares with the model.
    mutating func receive(_ type: PacketType, _ identifier: PacketIdentifier, _ comment: Comment) {
        let index = entries.firstIndex {
            $0.state != .waiting && PacketIdentifier(position: $0.position) == identifier
        }
        let entry = index.map { entries[$0] }
        let result: OutboundQueue.Received
        var expected = "unknown"
        switch (type, entry?.state, entry?.qos) {
        case (.puback, .sent, .atLeastOnce), (.pubcomp, .released, _):
            expected = "accepted \(entry?.position ?? 0)"
            if let index { entries.remove(at: index) }
        case (.pubrec, .sent, .exactlyOnce):
            expected = "accepted \(entry?.position ?? 0)"
            if let index { entries[index].state = .released }
        case (.pubrec, .released, _): expected = "repeated"
        case (_, .sent, .atLeastOnce): expected = "violation, puback awaited"
        case (_, .sent, .exactlyOnce): expected = "violation, pubrec awaited"
        case (_, .released, _): expected = "violation, pubcomp awaited"
        default: break
        }
        switch type {
        case .puback: result = queue.acknowledge(identifier, pool: owner.pool)
        case .pubrec: result = queue.markReceived(identifier, pool: owner.pool)
        default: result = queue.complete(identifier, pool: owner.pool)
        }
        #expect(result.text == expected, comment)
    }

    mutating func dropOldest(_ comment: Comment) {
        let index = entries.firstIndex { $0.state == .waiting }
        let position = queue.dropOldestWaiting(pool: owner.pool)
        #expect(position == index.map { entries[$0].position }, comment)
        if let index { entries.remove(at: index) }
    }

    mutating func removeAll() {
        queue.removeAll(in: owner.pool)
        entries.removeAll()
    }

    func checkCounters(_ comment: Comment) {
        #expect(Int(queue.inFlight) == inFlight.count, comment)
        #expect(Int(queue.waiting) == waiting.count, comment)
        // A topic of one byte.
        let bytes = waiting.reduce(0) { $0 + 1 + $1.payload.count }
        #expect(queue.waitingBytes == bytes, comment)
        #expect(queue.isEmpty == entries.isEmpty, comment)
        #expect(queue.end == end, comment)
    }

    /// Messages are re-sent in the original order and as the right packet [MQTT-4.6.0-1].
    func checkResends(_ comment: Comment) {
        var expected = inFlight[...]
        queue.forEachInFlight { resend in
            guard let entry = expected.popFirst() else {
                Issue.record("one too many: \(comment)")
                return
            }
            switch resend {
            case .publish(let item):
                #expect(entry.state == .sent, comment)
                check(item, entry, comment)
            case .pubrel(let identifier):
                #expect(entry.state == .released, comment)
                #expect(identifier == PacketIdentifier(position: entry.position), comment)
            }
        }
        #expect(expected.isEmpty, comment)
    }
}

extension OutboundQueue.Received {
    fileprivate var text: String {
        switch self {
        case .accepted(let position, _): "accepted \(position)"
        case .repeated: "repeated"
        case .unknown: "unknown"
        case .violation(let awaited): "violation, \(awaited) awaited"
        }
    }
}

@Suite("Outbound queue")
struct OutboundQueueTests {
    @Test("agrees with an array", arguments: UInt64(1)...48)
    func model(seed: UInt64) {
        let owner = TestPool()
        var before: [Int] = []
        for round in 0..<4 {
            var random = SplitMix64(seed: seed)
            // Includes the wrap of identifiers.
            let first = random.pick([0, 65_500, 65_534, 1_000_000_000] as [UInt64])
            var model = QueueModel(owner, firstPosition: first)
            for step in 0..<700 { act(&model, &random, "seed \(seed), step \(step)") }
            model.removeAll()
            model.checkCounters("seed \(seed), at the end")
            if round > 1 { #expect(owner.freeCounts == before, "a leak, seed \(seed)") }
            before = owner.freeCounts
        }
    }

    private func act(_ model: inout QueueModel, _ random: inout SplitMix64, _ comment: Comment) {
        switch random.number(in: 0...19) {
        case 0...5:
            let ticket = random.once(in: 3) ? 0 : UInt64(random.number(in: 1...40))
            model.append(
                random.bytes(random.number(in: 1...40)), random.pick(QoS.allCases),
                retain: random.once(in: 2), ticket: ticket)
        case 6...10:
            model.next(
                limit: UInt32(random.pick([0, 1, 4, 20])), abandons: random.once(in: 8), comment)
        case 11...12: model.committed.insert(UInt64(random.number(in: 1...40)))
        case 13 where random.once(in: 3): model.committed.removeAll()
        case 14: model.dropOldest(comment)
        case 15 where random.once(in: 30): model.removeAll()
        default:
            let type = random.pick([.puback, .pubrec, .pubcomp] as [PacketType])
            // Mostly an identifier in flight, often with the wrong acknowledgement.
            let entry = random.once(in: 5) ? nil : model.entries.randomElement(using: &random)
            let position = entry?.position ?? UInt64(random.number(in: 0...65_534))
            model.receive(type, PacketIdentifier(position: position), comment)
        }
        model.checkCounters(comment)
        model.checkResends(comment)
    }

    @Test("identifiers count from 1, wrap at 65,535, and none is in use twice")
    func identifiers() {
        let owner = TestPool()
        var queue = OutboundQueue()
        var inUse: Set<PacketIdentifier> = []
        var last: PacketIdentifier?
        for number in 0..<140_000 {
            queue.append(
                owner.message(), qos: .atLeastOnce, retain: false, ticket: 0, pool: owner.pool)
            guard
                case .send(let item) = queue.next(
                    limit: 100, pool: owner.pool, isCommitted: { _ in true })
            else {
                Issue.record("message \(number) did not leave")
                return
            }
            let identifier = item.packetIdentifier
            #expect(inUse.insert(identifier).inserted, "\(identifier) at \(number)")
            #expect(
                identifier.rawValue
                    == (last.map { $0.rawValue == 65_535 ? 1 : $0.rawValue + 1 } ?? 1))
            last = identifier
            guard inUse.count == 100 else { continue }
            for identifier in inUse {
                let answer = queue.acknowledge(identifier, pool: owner.pool).text
                #expect(answer.hasPrefix("accepted"))
            }
            inUse.removeAll()
        }
        queue.removeAll(in: owner.pool)
    }

    @Test("one message that is never acknowledged fills the queue at 65,535 positions")
    func full() {
        let owner = TestPool()
        var queue = OutboundQueue(firstPosition: 77)
        var sent: [PacketIdentifier] = []
        for _ in 0..<65_535 {
            #expect(!queue.isFull)
            queue.append(
                owner.message(), qos: .exactlyOnce, retain: false, ticket: 0, pool: owner.pool)
            guard
                case .send(let item) = queue.next(
                    limit: 65_535, pool: owner.pool, isCommitted: { _ in true })
            else {
                Issue.record("a message did not leave")
                return
            }
            sent.append(item.packetIdentifier)
        }
        #expect(queue.isFull)
        #expect(Set(sent).count == 65_535)
        // All but the oldest have ended: the holes after it still count.
        for identifier in sent.dropFirst().reversed() {
            _ = queue.markReceived(identifier, pool: owner.pool)
            _ = queue.complete(identifier, pool: owner.pool)
        }
        #expect(queue.isFull && queue.inFlight == 1)
        _ = queue.markReceived(sent[0], pool: owner.pool)
        #expect(queue.isFull, "its PUBREL is owed")
        _ = queue.complete(sent[0], pool: owner.pool)
        #expect(!queue.isFull && queue.isEmpty && queue.inFlight == 0)
        #expect(queue.end == 77 + 65_535)
    }

    @Test("a message behind one that waits for its commit waits too")
    func order() {
        let owner = TestPool()
        var model = QueueModel(owner, firstPosition: 0)
        model.append([1], .atLeastOnce, retain: false, ticket: 5)
        model.append([2], .atMostOnce, retain: false, ticket: 0)
        model.append([3], .atLeastOnce, retain: false, ticket: 4)
        model.committed = [4]
        model.next(limit: 10, abandons: false, "the first waits")
        #expect(model.queue.inFlight == 0 && model.queue.waiting == 3)
        model.committed = [4, 5]
        for _ in 0..<3 { model.next(limit: 10, abandons: false, "all leave") }
        #expect(model.queue.inFlight == 2 && model.queue.waiting == 0)
        model.removeAll()
    }

    @Test("an acknowledgement of the wrong kind changes nothing")
    func wrongKind() {
        let owner = TestPool()
        var model = QueueModel(owner, firstPosition: 0)
        for qos in QoS.allCases { model.append([9], qos, retain: false, ticket: 0) }
        // Identifier 1 belonged to a QoS 0 message, 2 to QoS 1, 3 to QoS 2.
        for _ in 0..<3 { model.next(limit: 10, abandons: false, "sent") }
        for type in [PacketType.puback, .pubcomp] { model.receive(type, 3, "\(type) of QoS 2") }
        for type in [PacketType.pubrec, .pubcomp] { model.receive(type, 2, "\(type) of QoS 1") }
        for type in [PacketType.puback, .pubrec, .pubcomp] {
            model.receive(type, 1, "\(type) of QoS 0")
            model.receive(type, 4, "\(type) of nothing")
            model.receive(type, 65_535, "\(type) of nothing")
        }
        model.checkResends("all are in flight still")
        model.receive(.pubrec, 3, "PUBREC")
        model.receive(.pubrec, 3, "PUBREC again")
        model.receive(.puback, 3, "PUBACK behind PUBREC")
        model.receive(.pubcomp, 3, "PUBCOMP")
        model.receive(.pubcomp, 3, "PUBCOMP again")
        model.receive(.puback, 2, "PUBACK")
        model.receive(.puback, 2, "PUBACK again")
        #expect(model.queue.isEmpty)
    }

    @Test("after PUBREC the message itself is given back [MQTT-4.3.3-1]")
    func releasedMemory() {
        let owner = TestPool()
        var queue = OutboundQueue()
        let message = owner.message(payload: [UInt8](repeating: 1, count: 5_000))
        let index = BytePool.classIndex(for: message.count + 32)
        queue.append(message, qos: .exactlyOnce, retain: false, ticket: 0, pool: owner.pool)
        _ = queue.next(limit: 1, pool: owner.pool) { _ in true }
        #expect(owner.pool.classes[index].freeCount == 0)
        _ = queue.markReceived(1, pool: owner.pool)
        #expect(owner.pool.classes[index].freeCount == 1)
        _ = queue.complete(1, pool: owner.pool)
        #expect(owner.pool.classes[index].freeCount == 1)
    }

    @Test("an empty queue answers nothing")
    func empty() {
        let owner = TestPool()
        var model = QueueModel(owner, firstPosition: 12)
        model.next(limit: 1, abandons: false, "empty")
        model.dropOldest("empty")
        for type in [PacketType.puback, .pubrec, .pubcomp] { model.receive(type, 13, "empty") }
        model.checkResends("empty")
        model.removeAll()
        model.checkCounters("empty")
    }
}
