import BrokerAPI
import Store
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// What each feature stores is what a start gives it back.
@Suite("Facts of the features")
struct FactCodingTests {
    private static let text = Array("a text".utf8)
    private static let long = [UInt8](repeating: 0x80, count: 300)

    @Test("a publish key")
    func publishKey() throws {
        var key = PublishKey(
            key: .max - 1, digest: 2, messageID: 1 << 100, bucket: 4, owner: 5, matched: 1,
            online: 2, queued: 3, dropped: .max, notRetained: 0)
        let facts = Self.facts { $0.publishKey(key) }
        #expect(facts[0].read { (fact) throws(DamagedFact) in try PublishKey(fact) } == key)
        #expect(Self.isDamaged(facts[0]) { (fact) throws(DamagedFact) in _ = try PublishKey(fact) })
        key.notRetained = NotRetained.expired.storedNumber
        let notRetained = Self.facts { $0.publishKey(key) }
        #expect(notRetained[0].read { (fact) throws(DamagedFact) in try PublishKey(fact) } == key)
    }

    @Test("a receipt, its receivers, their ends, which come before them, and their details")
    func receipts() throws {
        let owner = FactOwner(Self.text)
        let receipt = StoredReceipt(
            number: 7, atMs: -1, messageID: Self.text, owner: OwnerID(rawValue: 1 << 60),
            topic: Self.long)
        let receiver = StoredReceiver(
            receipt: 7, place: 1 << 31, session: 2, position: 3, clientID: Self.long)
        let end = ReceiverEnd(
            receipt: 7, place: 1 << 31, outcome: 1, reason: 2, atMs: 4, event: 5, owner: owner)
        let facts = Self.facts { batch in
            receiver.clientID.withUnsafeBytes {
                batch.receiptReceiver(
                    receipt: 7, of: owner, place: receiver.place, session: 2, position: 3,
                    clientID: $0, isNew: true)
            }
            Self.text.withUnsafeBytes {
                batch.receiptDetail(receipt: 7, of: owner, place: receiver.place, $0)
            }
            batch.receiptEnded(end)
            Self.text.withUnsafeBytes { messageID in
                Self.long.withUnsafeBytes {
                    batch.receipt(
                        7, atMs: -1, messageID: messageID, owner: OwnerID(rawValue: 1 << 60),
                        topic: $0)
                }
            }
        }
        let sorted = facts.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        let detail = ReceiverDetail(receipt: 7, place: receiver.place, text: Self.text)
        #expect(
            sorted.map(\.receipt)
                == [.receipt(receipt), .end(end), .receiver(receiver), .detail(detail)])
        #expect(Set(facts.map(\.owner)) == [owner])
        #expect(receiver.end(end) == end)
        #expect(receiver.end(nil).outcome == 0)
        let bounds = ReceiptProgress(begin: 1, lastEvent: 2, taken: 3)
        let stored = Self.facts { $0.receiptProgress(bounds) }
        #expect(
            stored[0].read { (fact) throws(DamagedFact) in try ReceiptProgress(fact) } == bounds)
    }

    @Test("a scheduled message, behind the time to which it was moved")
    func scheduled() throws {
        let message = StoredScheduled(
            number: 9, dueMs: 5, expiresInMs: 3, messageID: Self.text, owner: OwnerID(rawValue: 9),
            topic: Self.text,
            payload: Self.long, qos: 2, retain: true, isFollowed: false)
        let facts = Self.facts {
            $0.scheduled(message)
            $0.scheduledMoved(9, of: FactOwner(Self.text), dueMs: 77)
        }
        let read = facts.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map {
            $0.read { (fact) throws(DamagedFact) in try ScheduledFact(fact) }
        }
        #expect(read == [.moved(9, dueMs: 77), .message(message)])
    }

    @Test("a position with a collapse key")
    func collapsible() throws {
        let stored = StoredCollapsible(
            session: 1, position: 2, key: 3 << 70, sequences: [4, 1 << 62])
        let facts = Self.facts { $0.collapsible(stored, of: .broker) }
        #expect(
            facts[0].read { (fact) throws(DamagedFact) in try StoredCollapsible(fact) } == stored)
    }

    @Test("a tag")
    func tag() throws {
        let facts = Self.facts { batch in
            Self.text.withUnsafeBytes { tag in
                Self.long.withUnsafeBytes { batch.tag(tag, of: $0, isSet: true) }
            }
        }
        let tag = StoredTag(clientID: Self.long, tag: Self.text)
        #expect(facts[0].read { (fact) throws(DamagedFact) in try StoredTag(fact) } == tag)
    }

    @Test("a push with its progress, and without content after its end", arguments: [0, 19])
    func push(endedMs: Int64) throws {
        var push = StoredPush(
            number: 3, createdMs: 1, dueMs: 2, expiresInMs: 3, spreadMs: 4, pushID: Self.text,
            owner: OwnerID(rawValue: .max), topic: Self.text, payload: Self.long, qos: 1,
            isFollowed: true, target: Self.text,
            seed: 5)
        var progress = push.progress
        (progress.state, progress.cursor, progress.matched, progress.denied) = (1, 2, 3, 4)
        progress.endedMs = endedMs
        let facts = Self.facts {
            $0.push(push)
            $0.pushProgress(progress)
        }
        push.advance(to: progress)
        var parts = PushParts()
        var read: [StoredPush] = []
        for fact in facts.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            let part = fact.read { (fact) throws(DamagedFact) in try parts.add(fact) }
            if let found = part, let found { read.append(found) }
        }
        #expect(read == [push])
        #expect(facts.count == (endedMs == 0 ? 3 : 2))
    }

    @Test("a device, and how far it was woken", arguments: ["", "watch.1"])
    func device(name: String) throws {
        var device = StoredDevice(
            clientID: Self.text, userName: [], token: Self.long, bundle: Self.text,
            kind: 1, environment: 2, registeredMs: 3, isSetAside: true)
        device.name = Array(name.utf8)
        let woken = StoredDevice.Woken(
            session: 8, position: 9, atMs: 10, told: 11, showsBadge: true)
        let facts = Self.facts { batch in
            batch.device(device)
            batch.woken(of: device.clientID, named: device.name, woken)
        }
        #expect(facts[0].read { (fact) throws(DamagedFact) in try StoredDevice(fact) } == device)
        let read = facts[1].read { (fact) throws(DamagedFact) in
            try StoredDevice.Woken.read(fact)
        }
        #expect(read?.client == device.clientID)
        #expect(read?.name == device.name)
        #expect(read?.woken == woken)
        let none = Self.facts { batch in
            batch.device(device)
            batch.deviceRemoved(of: device.clientID, named: device.name)
        }
        #expect(none.isEmpty)
    }

    @Test("the tables have different numbers, and names that need no memory")
    func tables() {
        #expect(Set(FactTable.all.map(\.number)).count == FactTable.all.count)
        #expect(FactTable.all.allSatisfy { $0.name.utf8.count <= 15 })
    }

    // MARK: Support

    /// The facts that are left of the records that `body` writes.
    private static func facts(_ body: (inout WriteBatch) -> Void) -> [StoreRecord.Fact] {
        var batch = WriteBatch(isRecording: true)
        body(&batch)
        var facts: [StoreRecord.Fact] = []
        for record in batch.groups().flatMap(\.records) {
            switch record {
            case .fact(let fact): facts.append(fact)
            case .factRemoved(let table, _, let key):
                facts.removeAll { $0.table == table && $0.key == key }
            default: continue
            }
        }
        return facts
    }

    /// True when a fact that lacks its last byte, or has one more, is refused.
    private static func isDamaged(
        _ fact: StoreRecord.Fact, _ read: (StoredFact) throws(DamagedFact) -> Void
    ) -> Bool {
        var (short, long) = (fact, fact)
        short.value.removeLast()
        long.value.append(0)
        return short.read(read) == nil && long.read(read) == nil
    }
}
