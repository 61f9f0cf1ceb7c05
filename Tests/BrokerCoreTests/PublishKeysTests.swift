import BrokerAPI
import HermesTesting
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// Keys of messages from the admin plane: what is kept, and for how long.
@Suite("Keys of published messages")
struct PublishKeysTests {
    private static let hour: Int64 = 3_600_000
    private static let begin: Int64 = 1_700_000_000_000 / hour * hour

    private func makeKeys() -> PublishKeys { PublishKeys(hash: KeyedHash(seed: 1)) }

    private static func identity(_ number: Int, digest: UInt128 = 7) -> PublishIdentity {
        PublishIdentity(
            key: UInt128(number), digest: digest, messageID: UInt128(1_000 + number),
            isExplicit: true)
    }

    @Test("a repeat gets the first answer, another message under its key is told from it")
    func answers() {
        var keys = makeKeys()
        let counts = PublishCounts(matched: 3, online: 2, queued: 1, dropped: 4)
        var answers = [keys.answer(to: Self.identity(1))]
        _ = keys.add(Self.identity(1), of: .unknown, counts, limit: 100, at: Self.begin)
        answers.append(keys.answer(to: Self.identity(1)))
        answers.append(keys.answer(to: Self.identity(1, digest: 8)))
        answers.append(keys.answer(to: Self.identity(2)))
        #expect(answers == [nil, .repeated(counts, messageID: 1_001), .keyReused, nil])
        let count = keys.count
        #expect(count == 1)
    }

    @Test("a key counts for 24 hours at least, and is gone after the hour behind them")
    func expiry() {
        var keys = makeKeys()
        _ = keys.add(
            Self.identity(1), of: .unknown, PublishCounts(), limit: 100,
            at: Self.begin + Self.hour - 1)
        for hours in 0...24 {
            let early = keys.drop(limit: 100, at: Self.begin + Int64(hours) * Self.hour)
            #expect(early == nil)
        }
        let bucket = UInt64(Self.begin / Self.hour) << 16
        let dropped = keys.drop(limit: 100, at: Self.begin + 25 * Self.hour)
        #expect(dropped == bucket)
        let (answer, count, early) = (
            keys.answer(to: Self.identity(1)), keys.count, keys.droppedEarly
        )
        #expect(answer == nil && count == 0 && early == 0)
        let more = keys.drop(limit: 100, at: Self.begin + 99 * Self.hour)
        #expect(more == nil)
    }

    @Test("above the limit the oldest go first, and are counted")
    func limit() {
        var keys = makeKeys()
        for number in 0..<320 {
            _ = keys.add(
                Self.identity(number), of: .unknown, PublishCounts(), limit: 320, at: Self.begin)
        }
        var work = [keys.hasWork(limit: 320)]
        _ = keys.add(Self.identity(320), of: .unknown, PublishCounts(), limit: 320, at: Self.begin)
        work.append(keys.hasWork(limit: 320))
        let begin = keys.drop(limit: 320, at: Self.begin)
        // A bucket of a thirty-second of the limit goes as a whole.
        let unknown = (0...320).filter { keys.answer(to: Self.identity($0)) == nil }
        work.append(keys.hasWork(limit: 320))
        let (count, early) = (keys.count, keys.droppedEarly)
        #expect(work == [false, true, false])
        #expect(begin != nil && count == 311 && early == 10)
        #expect(unknown == Array(0..<10))
    }

    @Test("a limit of 0 drops all, in slices of turns, and each turn's answers are whole")
    func slices() {
        var keys = makeKeys()
        for number in 0..<5_000 {
            _ = keys.add(
                Self.identity(number), of: .unknown, PublishCounts(), limit: 32 * 3_000,
                at: Self.begin)
        }
        var begins: [UInt64] = []
        var turns = 0
        while keys.hasWork(limit: 0) {
            if let begin = keys.drop(limit: 0, at: Self.begin) { begins.append(begin) }
            turns += 1
            let known = (0..<5_000).count { keys.answer(to: Self.identity($0)) != nil }
            let count = keys.count
            #expect(known == count)
        }
        // 3,000 keys take three turns, 2,000 take two.
        #expect(turns == 5)
        #expect(begins.count == 2 && begins[0] < begins[1])
    }

    @Test("an owner with very many keys drops its own, and nobody else's")
    func owners() {
        let (shop, flood) = (OwnerID(rawValue: 1), OwnerID(rawValue: 2))
        var keys = makeKeys()
        for number in 0..<100 {
            _ = keys.add(
                Self.identity(number), of: shop, PublishCounts(), limit: 320, at: Self.begin)
        }
        for number in 1_000..<9_000 {
            _ = keys.add(
                Self.identity(number), of: flood, PublishCounts(), limit: 320, at: Self.begin)
            while keys.hasWork(limit: 320) { _ = keys.drop(limit: 320, at: Self.begin) }
        }
        let kept = (0..<100).count { keys.answer(to: Self.identity($0)) != nil }
        let (last, count) = (keys.answer(to: Self.identity(8_999)), keys.count)
        #expect(kept == 100 && last != nil && count <= 320)
        // Restored, they are the same owners' still.
        var restored = makeKeys()
        let more = [shop, flood].map {
            keys.add(
                Self.identity(Int($0.rawValue) + 9_000), of: $0, PublishCounts(), limit: 320,
                at: Self.begin)
        }
        for key in more.sorted(by: { $0.bucket < $1.bucket }) { restored.restore(key) }
        for number in 0..<40 {
            _ = restored.add(
                Self.identity(number), of: flood, PublishCounts(), limit: 32, at: Self.begin)
        }
        while restored.hasWork(limit: 32) { _ = restored.drop(limit: 32, at: Self.begin) }
        let isKept = restored.answer(to: Self.identity(9_001)) != nil
        #expect(isKept)
    }

    @Test("buckets rise though the clock is set back, and behind one that is being dropped")
    func buckets() {
        var keys = makeKeys()
        var last: UInt64 = 0
        for (number, time) in ([5, 4, 5, 9, 2] as [Int64]).enumerated() {
            let key = keys.add(
                Self.identity(number), of: .unknown, PublishCounts(), limit: 1_000,
                at: Self.begin + time * Self.hour)
            #expect(key.bucket >= last)
            last = key.bucket
        }
        for number in 10..<2_000 {
            _ = keys.add(
                Self.identity(number), of: .unknown, PublishCounts(), limit: 64_000, at: Self.begin)
        }
        while keys.hasWork(limit: 1) {
            let begin = keys.drop(limit: 1, at: Self.begin)
            let key = keys.add(
                Self.identity(5_000 + Int(last)), of: .unknown, PublishCounts(), limit: 64_000,
                at: Self.begin)
            if let begin { #expect(key.bucket > begin) }
            last += 1
            if last & 0xF == 0 { break }
        }
    }

    @Test("what the store kept is known again, and new buckets lie behind it")
    func restored() {
        var keys = makeKeys()
        let first = keys.add(
            Self.identity(1), of: .unknown, PublishCounts(queued: 2), limit: 9, at: Self.begin)
        let second = keys.add(
            Self.identity(2), of: .unknown, PublishCounts(), limit: 9, at: Self.begin + Self.hour)
        var restored = makeKeys()
        restored.restore(second)
        let answers = [1, 2].map { restored.answer(to: Self.identity($0)) }
        #expect(answers == [nil, .repeated(PublishCounts(), messageID: 1_002)])
        let third = restored.add(
            Self.identity(3), of: .unknown, PublishCounts(), limit: 9, at: Self.begin)
        #expect(first.bucket < second.bucket && third.bucket >= second.bucket)
    }
}
