/// Decides in which table the content of a segment's surviving messages is stored, and counts the
/// rows that refer to it.
///
/// A message that only one queue row refers to is stored in that row: one row to write, read and
/// delete, beside its neighbours (docs/decisions/0009). All others get a row in `messages`, and so
/// do payloads too large for one write.
struct SegmentContent {
    /// Payloads of up to this many bytes are bound whole; larger ones are written in slices of this
    /// size.
    static let largestBound = 256 * 1_024

    /// The index of the message of each entry in `queued`; -1 for released entries, which need no
    /// content.
    private(set) var messageOfQueued: [Int32] = []
    /// Number of rows that will refer to each message.
    private(set) var references: [UInt32]
    /// True for each message that gets a row in `messages`.
    private(set) var isShared: [Bool]

    /// - Throws: ``StoreFailure`` if a record refers to a message that the segment does not
    ///   contain.
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

    /// Finds a number in a rising list; needs one step where the list has few gaps.
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
