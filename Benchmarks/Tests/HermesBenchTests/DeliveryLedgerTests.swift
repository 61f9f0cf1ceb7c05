import Testing

@testable import hermes_bench

@Suite("DeliveryLedger")
struct DeliveryLedgerTests {
    /// Feeds sequences to one stream and counts what they are taken for.
    private func outcome(
        _ sequences: [UInt64]
    ) -> (delivered: Int, skipped: UInt64, late: Int, duplicates: Int) {
        var ledger = DeliveryLedger(streams: 2)
        var result = (delivered: 0, skipped: UInt64(0), late: 0, duplicates: 0)
        for sequence in sequences {
            switch ledger.record(sequence, on: 1) {
            case .inOrder(let skipped):
                result.delivered += 1
                result.skipped += skipped
            case .late:
                result.delivered += 1
                result.late += 1
            case .duplicate: result.duplicates += 1
            }
        }
        return result
    }

    @Test("messages in order are just delivered")
    func inOrder() {
        #expect(outcome(Array(0..<5_000)) == (5_000, 0, 0, 0))
    }

    @Test("a hole is skipped once, and what fills it later is out of order")
    func lateArrival() {
        #expect(outcome([0, 3, 1, 2, 4]) == (5, 2, 2, 0))
    }

    @Test("the newest, an older and a late message count once however often they come")
    func duplicates() {
        #expect(outcome([0, 1, 1, 0, 4, 2, 2, 4]) == (4, 2, 1, 4))
    }

    @Test("what is skipped is not mistaken for what arrived a lap of the ring earlier")
    func ringIsCleared() {
        var sequences = Array(UInt64(0)..<1_024)
        sequences += [1_030, 1_025, 1_025]
        #expect(outcome(sequences) == (1_026, 6, 1, 1))
    }

    @Test("a hole of several laps leaves no trace of what was before")
    func longHole() {
        let sequences = Array(UInt64(0)..<1_000) + [9_000, 8_500, 8_500]
        #expect(outcome(sequences) == (1_002, 8_000, 1, 1))
    }

    @Test("streams are independent")
    func independence() {
        var ledger = DeliveryLedger(streams: 2)
        _ = ledger.record(7, on: 0)
        let expected = [ledger.expected(0), ledger.expected(1)]
        #expect(expected == [8, 0])
    }
}
