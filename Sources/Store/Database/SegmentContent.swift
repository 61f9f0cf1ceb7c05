/// Where the content of a segment's surviving messages goes, and who refers to it.
///
/// A message that one queue row alone refers to lies in that row: one row to write, to read and to
/// delete, beside its neighbours (docs/decisions/0009). Everything else gets a row of `messages`,
/// and so do payloads too large for one write.
struct SegmentContent {
    /// Payloads up to this size are bound whole; larger ones are written in slices of it.
    static let largestBound = 256 * 1_024

    /// For each entry of `queued` the index of its message; -1 for released ones, which need none.
    private(set) var messageOfQueued: [Int32] = []
    /// For each message the rows that will name it.
    private(set) var references: [UInt32]
    /// For each message whether it gets a row of `messages`.
    private(set) var isShared: [Bool]

    /// - Throws: ``StoreFailure`` if something refers to a message that the segment does not hold.
    init(_ changes: borrowing SegmentChanges, path: String) throws(StoreFailure) {
        let numbers = changes.messages.map(\.number)
        references = [UInt32](repeating: 0, count: numbers.count)
        isShared = changes.messages.map { Int($0.payload.count) > Self.largestBound }
        messageOfQueued.reserveCapacity(changes.queued.count)
        let segment = changes.segment

        func index(_ number: UInt64) throws(StoreFailure) -> Int {
            guard let index = Self.index(of: number, in: numbers) else {
                throw StoreFailure(
                    operation: "write", path: path,
                    reason: "journal segment \(segment) refers to message \(number), "
                        + "whose content it does not hold", kind: .damaged,
                    cure: "Run `hermesctl store check`, or start on a backup.")
            }
            return index
        }
        for entry in changes.queued {
            guard !entry.isReleased else {
                messageOfQueued.append(-1)
                continue
            }
            let index = try index(entry.message)
            references[index] += 1
            if references[index] > 1 { isShared[index] = true }
            messageOfQueued.append(Int32(index))
        }
        for change in changes.retained {
            guard let message = change.message else { continue }
            let index = try index(message)
            references[index] += 1
            isShared[index] = true
        }
        for change in changes.wills {
            guard let message = change.message else { continue }
            let index = try index(message)
            references[index] += 1
            isShared[index] = true
        }
    }

    /// Finds a number in a rising list, at once where it has few gaps.
    private static func index(of number: UInt64, in numbers: [UInt64]) -> Int? {
        guard let first = numbers.first, let last = numbers.last, number >= first, number <= last
        else { return nil }
        var low = 0
        var high = numbers.count - 1
        var probe = Int(min(number - first, UInt64(high)))
        while low <= high {
            let found = numbers[probe]
            if found == number { return probe }
            if found < number { low = probe + 1 } else { high = probe - 1 }
            probe = (low + high) / 2
        }
        return nil
    }
}
