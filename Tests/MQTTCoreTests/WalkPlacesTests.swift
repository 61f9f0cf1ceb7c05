import HermesTesting
import Testing

@testable import MQTTCore
@testable import Structures

@Suite("Places of walks")
struct WalkPlacesTests {
    @Test("agree with a dictionary from walker to node", arguments: UInt64(1)...32)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var places = WalkPlaces(hash: KeyedHash(seed: seed))
        var model: [UInt32: UInt32] = [:]
        for step in 0..<2_000 {
            let node = UInt32(random.number(in: 0...12))
            let walker = model.keys.sorted().randomElement(using: &random)
            switch (random.number(in: 0...4), walker) {
            case (0, _) where model.count < 20: model[places.begin(at: node)] = node
            case (1, let walker?):
                places.end(walker)
                model[walker] = nil
            case (2, _):
                let target = UInt32(random.number(in: 0...12))
                if places.holds(node), node != target { places.move(from: node, to: target) }
                for (walker, at) in model where at == node { model[walker] = target }
            case (_, let walker?):
                if let resumed = places.resume(walker) {
                    #expect(resumed == model[walker], "seed \(seed), step \(step)")
                }
                places.reach(node)
                model[walker] = node
            default: continue
            }
            #expect(places.count == model.count)
            #expect(places.placeCount <= Set(model.values).count)
        }
        for walker in model.keys { places.end(walker) }
        #expect(places.count == 0 && places.placeCount == 0)
    }

    @Test("a walker that goes on alone takes no place; one that another overtakes keeps its node")
    func moving() {
        var places = WalkPlaces(hash: KeyedHash(seed: 1))
        let one = places.begin(at: 7)
        for node in UInt32(8)..<100 { places.reach(node) }
        let same = places.resume(one)
        #expect(same == nil && places.placeCount == 0)
        let two = places.begin(at: 3)
        #expect(places.placeCount == 1)
        let resumed = (places.resume(one), places.resume(two))
        #expect(resumed == (99, 3))
    }

    @Test("10,000 walkers on one node move together, however often")
    func crowd() {
        var places = WalkPlaces(hash: KeyedHash(seed: 1))
        let walkers = (0..<10_000).map { _ in places.begin(at: 0) }
        let latecomer = places.begin(at: 50)
        let start = ContinuousClock.now
        for node in UInt32(0)..<50_000 { places.move(from: node, to: node + 1) }
        // One by one it would be 500,000,000 changes.
        #expect(ContinuousClock.now - start < .seconds(5))
        #expect(places.placeCount == 1)
        let ends = (places.resume(walkers[17]), places.resume(latecomer))
        #expect(ends == (50_000, 50_000))
    }
}
