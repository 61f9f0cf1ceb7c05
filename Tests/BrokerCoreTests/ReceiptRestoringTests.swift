import BrokerAPI
import Store
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// Receipts as the store hands them back at a start.
@Suite("Receipts after a start")
struct ReceiptRestoringTests {
    private let pool = BytePool()

    private func client(_ name: String) -> CompactBytes {
        Array(name.utf8).withUnsafeBytes { CompactBytes($0, pool: pool) }
    }

    private func makeReceipts() throws -> Receipts {
        var receipts = Receipts(hash: KeyedHash(seed: 1))
        receipts.restore(ReceiptProgress(begin: 3, lastEvent: 9, taken: 4))
        for number in 3...4 as ClosedRange<UInt64> {
            let text = Array("m\(number)".utf8)
            receipts.restore(
                StoredReceipt(
                    number: number, atMs: 1, messageID: text, owner: .unknown, topic: text),
                pool: pool)
        }
        let ends: [(receipt: UInt64, place: UInt32, event: UInt64)] = [
            (3, 0, 6), (3, 1, 4), (4, 0, 5),
        ]
        for end in ends {
            let restored = receipts.restored(end.receipt)
            let receipt = try #require(restored)
            let place = receipts.add(
                receipt, session: 1, client: client("c\(end.receipt)-\(end.place)"))
            receipts.restore(
                ReceiverEnd(
                    receipt: end.receipt, place: end.place,
                    outcome: ReceiverOutcome.acknowledged.rawValue,
                    reason: ReceiverReason.none.number, atMs: 2, event: end.event), of: place)
        }
        receipts.finishRestoring()
        return receipts
    }

    @Test("events that were not taken come in the order of their numbers")
    func order() throws {
        var receipts = try makeReceipts()
        let events = receipts.events(after: 0, most: 10) { _ in true }
        #expect(events.map(\.number) == [5, 6])
        #expect(events.map(\.clientID) == ["c4-0", "c3-0"])
        let hasTaken = receipts.takeEvents(through: 5)
        let left = receipts.events(after: 0, most: 10) { _ in true }.map(\.number)
        #expect(hasTaken && left == [6])
    }

    @Test("numbers of events and receipts go on above all that were ever given")
    func numbers() throws {
        var receipts = try makeReceipts()
        let event = receipts.events.newNumber()
        #expect(event == 10)
        let place = Array("new".utf8).withUnsafeBytes {
            receipts.add(messageID: $0, owner: .unknown, topic: $0, at: 3, pool: pool)
        }
        let number = receipts.records[place].number
        #expect(number == 5)
        let unknown = receipts.restored(2)
        #expect(unknown == nil)
    }

    @Test("receipts that are dropped with events say the last number of these to the store")
    func dropped() throws {
        var receipts = try makeReceipts()
        let drops = receipts.drop(limit: 2, at: 4, pool: pool)
        let progress = receipts.progress
        let dropped = receipts.events.dropped
        #expect(drops == ReceiptDrops(hasBegun: true))
        #expect(progress == ReceiptProgress(begin: 4, lastEvent: 9, taken: 4))
        #expect(dropped == 1)
    }

    @Test("an open receiver whose session is gone ends in a coming turn")
    func orphan() throws {
        var receipts = try makeReceipts()
        let place = Array("new".utf8).withUnsafeBytes {
            receipts.add(messageID: $0, owner: .unknown, topic: $0, at: 3, pool: pool)
        }
        let receiver = receipts.follow(place, session: 8, position: 7, client: client("gone"))
        receipts.sessionEnded(8)
        let found = receipts.lists.nextOrphan()
        #expect(found == receiver)
        let end = receipts.end(
            receiver, .dropped, .sessionEnded, at: 5, ticket: 0, keepsEvents: true)
        #expect(end.event == 10)
        let left = receipts.lists.nextOrphan()
        let open = receipts.find(session: 8, position: 7)
        #expect(left == nil && open == nil)
    }
}
