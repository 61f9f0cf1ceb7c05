import BrokerAPI
import HermesTesting
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("Tags of clients")
struct TaggedClientsTests {
    private let pool = BytePool()

    private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    private func change(
        _ tagged: inout TaggedClients, _ client: String, _ tag: String, isSet: Bool
    ) -> Bool {
        Self.bytes(client).withUnsafeBytes { client in
            Self.bytes(tag).withUnsafeBytes { tag in
                isSet
                    ? tagged.add(tag, to: client, pool: pool)
                    : tagged.remove(tag, from: client, pool: pool)
            }
        }
    }

    private func texts(_ tagged: borrowing TaggedClients, _ client: String) -> [String] {
        Self.bytes(client).withUnsafeBytes { tagged.texts(of: $0) }
            .map { String(decoding: $0, as: UTF8.self) }
    }

    /// All clients that an expression chooses, by pages of `places`.
    private func clients(
        _ tagged: borrowing TaggedClients, _ expression: TagExpression, places: UInt32
    ) -> Set<String> {
        var found: [String] = []
        var next: String? = "0"
        while let place = next.flatMap({ UInt32($0) }) {
            let page = tagged.clients(with: expression, from: place, most: 7, places: places)
            found += page.clients
            next = page.next
        }
        #expect(Set(found).count == found.count)
        return Set(found)
    }

    @Test(
        "agree with sets, and take no bytes once all are removed",
        arguments: 1...8 as ClosedRange<UInt64>)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var tagged = TaggedClients(hash: KeyedHash(seed: seed))
        var model: [String: Set<String>] = [:]
        for _ in 1...3_000 {
            let client = "client-\(Int.random(in: 1...40, using: &random))-with-a-long-name"
            let tag = "tag\(Int.random(in: 1...12, using: &random))"
            let isSet = Bool.random(using: &random)
            let isChanged = change(&tagged, client, tag, isSet: isSet)
            let expected =
                isSet
                ? model[client, default: []].insert(tag).inserted
                : model[client, default: []].remove(tag) != nil
            #expect(isChanged == expected)
        }
        model = model.filter { !$0.value.isEmpty }
        let count = tagged.count
        #expect(count == model.count)
        for (client, tags) in model {
            let found = texts(tagged, client)
            #expect(found == tags.sorted())
        }
        for (any, all, none) in [
            (["tag1"], [], []), (["tag1", "tag2", "no"], ["tag3"], []), ([], ["tag4", "tag5"], []),
            ([], ["tag4"], ["tag5", "no"]), (["no"], [], []), ([], ["tag1", "no"], []),
        ] as [([String], [String], [String])] {
            let expression = TagExpression(
                any: any.map(Self.bytes), all: all.map(Self.bytes), none: none.map(Self.bytes))
            let expected = model.filter { _, tags in
                (any.isEmpty || any.contains(where: tags.contains))
                    && all.allSatisfy(tags.contains) && !none.contains(where: tags.contains)
            }
            let found = clients(tagged, expression, places: 5)
            #expect(found == Set(expected.keys))
        }
        let page = tagged.summaries(from: 0, most: 100, places: 100)
        let sums = Dictionary(uniqueKeysWithValues: page.tags.map { ($0.tag, $0.clients) })
        #expect(sums.values.reduce(0, +) == model.values.reduce(0) { $0 + $1.count })
        for (client, tags) in model {
            for tag in tags { #expect(change(&tagged, client, tag, isSet: false)) }
        }
        let (bytes, left) = (tagged.bytes, tagged.count)
        #expect(bytes == 0 && left == 0)
    }
}

@Suite("The order of a push")
struct ReceiverHeapTests {
    @Test("comes with ascending hashes, and finds all in several walks", arguments: [8, 64, 5_000])
    func walks(most: Int) {
        var random = SplitMix64(seed: 3)
        let hashes = (0..<1_000).map { _ in random.next() >> 1 }
        var found: [UInt64] = []
        var (cursor, walks) = (UInt64(0), 0)
        while cursor < ReceiverHeap.end {
            walks += 1
            var heap = ReceiverHeap()
            for (place, hash) in hashes.enumerated() where hash >= cursor {
                heap.insert(
                    ReceiverHeap.Entry(hash: hash, place: UInt32(place)), from: cursor, most: most)
            }
            while let entry = heap.popFirst() {
                #expect(entry.hash >= cursor && hashes[Int(entry.place)] == entry.hash)
                found.append(entry.hash)
                cursor = entry.hash + 1
            }
            cursor = max(cursor, heap.bound)
        }
        #expect(found == hashes.sorted())
        #expect(most < 1_000 ? walks > 10 : walks == 1)
    }

    @Test("clients of one hash stay together")
    func same() {
        var heap = ReceiverHeap()
        for place in 0..<40 as Range<UInt32> {
            heap.insert(ReceiverHeap.Entry(hash: 7, place: place), from: 7, most: 8)
        }
        var count = 0
        while heap.popFirst() != nil { count += 1 }
        #expect(count == 40)
    }
}
