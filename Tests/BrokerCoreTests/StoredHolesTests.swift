import HermesTesting
import Testing

@testable import BrokerCore

@Suite("Holes of stored queues")
struct StoredHolesTests {
    @Test("are as a set of positions has them", arguments: UInt64(1)...16)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var holes = StoredHoles()
        var model: [UInt64: Set<UInt64>] = [:]
        for _ in 0..<2_000 {
            let session = UInt64(random.number(in: 1...3))
            let position = UInt64(random.number(in: 0...1_700))
            switch random.number(in: 0...5) {
            case 0...3:
                let isNew = holes.add(position, of: session)
                #expect(isNew == model[session, default: []].insert(position).inserted)
            case 4:
                let first = position > 300 ? position - 300 : 0
                // What lies before is forgotten already, as of a queue whose front moves.
                holes.forget(session, from: 0, below: first)
                holes.forget(session, from: first, below: position)
                model[session] = model[session, default: []].filter { $0 >= position }
            default:
                #expect(
                    holes.contains(position, of: session)
                        == model[session, default: []].contains(position))
                var end = position
                while model[session, default: []].contains(end) { end += 1 }
                #expect(holes.end(from: position, of: session) == end)
            }
        }
        for session in 1...3 as ClosedRange<UInt64> {
            holes.forget(session, from: 0, below: 2_048)
        }
        #expect(holes.isEmpty)
    }

    @Test("a run over many pages ends where it ends")
    func longRun() {
        var holes = StoredHoles()
        for position in 100..<5_000 as Range<UInt64> { _ = holes.add(position, of: 7) }
        #expect(holes.end(from: 100, of: 7) == 5_000)
        #expect(holes.end(from: 99, of: 7) == 99)
        #expect(holes.pageCount == 10)
        holes.forget(7, from: 100, below: 5_000)
        #expect(holes.isEmpty)
    }
}
