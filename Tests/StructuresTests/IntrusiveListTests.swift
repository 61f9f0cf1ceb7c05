import HermesTesting
import Structures
import Testing

@Suite("IntrusiveList")
struct IntrusiveListTests {
    private struct Record: BitwiseCopyable {
        var name: UInt32
        var inFirst = ListLinks()
        var inSecond = ListLinks()
    }

    private enum InFirst: ListField {
        static subscript(record: UnsafeMutablePointer<Record>) -> ListLinks {
            get { record.pointee.inFirst }
            set { record.pointee.inFirst = newValue }
        }
    }

    private enum InSecond: ListField {
        static subscript(record: UnsafeMutablePointer<Record>) -> ListLinks {
            get { record.pointee.inSecond }
            set { record.pointee.inSecond = newValue }
        }
    }

    private static func contents<Field: ListField>(
        _ list: IntrusiveList<Field>, _ records: borrowing Slab<Record>
    ) -> [UInt32] where Field.Record == Record {
        var contents: [UInt32] = []
        var index = list.first
        while index != noIndex {
            contents.append(index)
            index = Field[records.pointer(to: index)].next
        }
        return contents
    }

    @Test("any order of changes leaves what an array would hold, in both lists of each record")
    func model() {
        var random = SplitMix64(seed: 7)
        var records = Slab<Record>()
        for name in 0..<40 as Range<UInt32> { _ = records.insert(Record(name: name)) }
        var lists = (IntrusiveList<InFirst>(), IntrusiveList<InSecond>())
        var models: ([UInt32], [UInt32]) = ([], [])
        for _ in 0..<20_000 {
            let index = UInt32(random.next() % 40)
            let change = random.next() % 4
            if random.next() % 2 == 0 {
                Self.change(&lists.0, &models.0, index, change, records)
            } else {
                Self.change(&lists.1, &models.1, index, change, records)
            }
            guard Self.contents(lists.0, records) == models.0,
                Self.contents(lists.1, records) == models.1
            else {
                Issue.record("\(models) expected")
                return
            }
        }
        #expect(records[39].name == 39)
    }

    private static func change<Field: ListField>(
        _ list: inout IntrusiveList<Field>, _ model: inout [UInt32], _ index: UInt32,
        _ change: UInt64, _ records: borrowing Slab<Record>
    ) where Field.Record == Record {
        switch (change, model.firstIndex(of: index)) {
        case (0, nil):
            list.prepend(index, in: records)
            model.insert(index, at: 0)
        case (1, nil):
            list.append(index, in: records)
            model.append(index)
        case (2, let place?):
            list.remove(index, in: records)
            model.remove(at: place)
        case (3, let place?):
            #expect(list.next(after: index, in: records) == model[(place + 1) % model.count])
            list.rotate(to: index, in: records)
            model = Array(model[place...] + model[..<place])
        default: break
        }
        #expect(list.isEmpty == model.isEmpty)
    }

    @Test("a list takes four bytes, and a field of a record eight")
    func size() {
        #expect(MemoryLayout<IntrusiveList<InFirst>>.size == 4)
        #expect(MemoryLayout<ListLinks>.size == 8)
    }
}
