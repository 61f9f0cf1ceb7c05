import BrokerAPI
import MQTTCodec
import Store
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("Scheduled messages")
struct ScheduledMessagesTests {
    private static func stored(_ number: UInt64, dueMs: Int64) -> StoredScheduled {
        StoredScheduled(
            number: number, dueMs: dueMs, expiresInMs: 0, messageID: Array("id\(number)".utf8),
            owner: .unknown,
            topic: Array("t".utf8), payload: Array("p\(number)".utf8), qos: 1, retain: false,
            isFollowed: false)
    }

    @Test("leave in the order of their times, and of one time in that of their numbers")
    func order() {
        let pool = BytePool()
        var scheduled = ScheduledMessages(hash: KeyedHash(seed: 1))
        // Times repeat: 7 and 1,000 have no common divisor.
        for number in UInt64(1)...1_000 {
            scheduled.insert(Self.stored(number, dueMs: Int64(number * 7 % 100)), pool: pool)
        }
        for number in UInt64(1)...100 {
            let id = Array("id\(number * 10)".utf8)
            guard let place = scheduled.find(OwnedName(id, of: .unknown)) else {
                Issue.record("id\(number * 10) is not found")
                return
            }
            if number % 2 == 0 {
                scheduled.remove(place, pool: pool)
            } else {
                scheduled.move(place, toMs: Int64(number % 50))
            }
        }
        var found: [[Int64]] = []
        while let place = scheduled.popDue(at: 1_000) {
            let record = scheduled.records[place]
            found.append([record.dueMs, Int64(record.number)])
            scheduled.remove(place, pool: pool)
        }
        #expect(found.count == 950)
        #expect(found == found.sorted { ($0[0], $0[1]) < ($1[0], $1[1]) })
        #expect(scheduled.count == 0)
        #expect(scheduled.bytes == 0)
    }

    @Test("is not due before its time")
    func due() {
        let pool = BytePool()
        var scheduled = ScheduledMessages(hash: KeyedHash(seed: 1))
        scheduled.insert(Self.stored(9, dueMs: 500), pool: pool)
        #expect(scheduled.popDue(at: 499) == nil)
        #expect(scheduled.firstDueMs == 500)
        #expect(scheduled.popDue(at: 500) != nil)
        #expect(scheduled.firstDueMs == nil)
        // It stays a record until it is published.
        #expect(scheduled.count == 1)
        #expect(scheduled.nextNumber() == 10)
    }
}
