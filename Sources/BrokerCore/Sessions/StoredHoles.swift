import Structures

/// Positions of stored queues whose messages have left from the middle: replaced, or expired while
/// others before them wait on.
///
/// A queue counts its holes, and this says where they are: so those at its front are passed, and none
/// is taken out twice. A restart knows the count alone. 512 positions take a page of some 100 bytes;
/// pages without holes take none.
package struct StoredHoles {
    private struct Key: Hashable {
        let session: UInt64
        let page: UInt64
    }

    private typealias Page = InlineArray<8, UInt64>

    private static var positionsPerPage: UInt64 { 512 }

    private var pages: [Key: Page] = [:]

    package init() {}

    package var isEmpty: Bool { pages.isEmpty }
    /// Pages that take memory.
    package var pageCount: Int { pages.count }

    /// Notes a hole; false when it is known.
    package mutating func add(_ position: UInt64, of session: UInt64) -> Bool {
        let (key, word, bit) = place(of: position, session)
        var page = pages[key] ?? Page(repeating: 0)
        guard page[word] & bit == 0 else { return false }
        page[word] |= bit
        pages[key] = page
        return true
    }

    package func contains(_ position: UInt64, of session: UInt64) -> Bool {
        guard !pages.isEmpty else { return false }
        let (key, word, bit) = place(of: position, session)
        return pages[key].map { $0[word] & bit != 0 } ?? false
    }

    /// The first position from `position` on that is no hole.
    package func end(from position: UInt64, of session: UInt64) -> UInt64 {
        var end = position
        while true {
            let (key, first, bit) = place(of: end, session)
            guard let page = pages[key] else { return end }
            var word = first
            // The bits before the position count as holes.
            var left = ~(page[word] | (bit - 1))
            while left == 0 {
                word += 1
                guard word < 8 else { break }
                left = ~page[word]
            }
            let start = key.page * Self.positionsPerPage
            guard left == 0 else {
                return start + UInt64(word * 64 + left.trailingZeroBitCount)
            }
            end = start + Self.positionsPerPage
        }
    }

    /// Forgets the holes of a session between two positions: its queue no longer counts them.
    package mutating func forget(
        _ session: UInt64, from first: UInt64, below end: UInt64
    ) {
        guard !pages.isEmpty, first < end else { return }
        var page = first / Self.positionsPerPage
        while page < end / Self.positionsPerPage {
            pages[Key(session: session, page: page)] = nil
            page += 1
        }
        let (key, last, bit) = place(of: end, session)
        guard var rest = pages[key] else { return }
        for word in 0..<last { rest[word] = 0 }
        rest[last] &= ~(bit - 1)
        let isNeeded = (last..<8).contains { rest[$0] != 0 }
        pages[key] = isNeeded ? rest : nil
    }

    private func place(of position: UInt64, _ session: UInt64) -> (Key, word: Int, bit: UInt64) {
        let offset = position % Self.positionsPerPage
        return (
            Key(session: session, page: position / Self.positionsPerPage), Int(offset / 64),
            1 << (offset % 64)
        )
    }
}
