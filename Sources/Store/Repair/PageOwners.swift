/// Finds the table that each page of a damaged database belongs to.
///
/// A tree of pages begins at its root, and pages between root and leaves name those below. Where such a
/// page is damaged, the pages below it are found by the pointer map, which names the page above each
/// one. (SQLite keeps it because of `PRAGMA auto_vacuum`.)
struct PageOwners {
    /// What the pointer map says of a page.
    private enum Kind {
        static let root: UInt8 = 1
        static let below: UInt8 = 5
    }

    /// A tree has few levels; a damaged map may have a circle.
    private static let mostLevels = 64
    /// Bytes of a page in the map: its kind, and the page above it.
    private static let entryBytes = 5

    /// By page; 0 for pages of no known tree.
    private(set) var roots: [UInt32]
    private var kinds: [UInt8]
    private var above: [UInt32]

    init(_ file: inout PageFile) {
        let count = Int(file.count) + 1
        roots = [UInt32](repeating: 0, count: count)
        kinds = [UInt8](repeating: 0, count: count)
        above = [UInt32](repeating: 0, count: count)
        // Page 2 is the first of the map; the pages that it tells of follow it.
        let told = PageFile.usable / Self.entryBytes
        for first in stride(from: 2, to: count, by: told + 1) {
            let map = UInt32(first) == PageFile.lockPage ? first + 1 : first
            guard let page = file.page(UInt32(map)) else { continue }
            for entry in 0..<told {
                let number = map + 1 + entry
                guard number < count else { break }
                kinds[number] = page[entry * Self.entryBytes]
                above[number] = page.pageNumber(at: entry * Self.entryBytes + 1) ?? 0
            }
        }
    }

    /// Notes the pages of the tree with this root that its undamaged pages name.
    mutating func claim(root: UInt32, _ file: inout PageFile) {
        guard roots.indices.contains(Int(root)), roots[Int(root)] == 0 else { return }
        roots[Int(root)] = root
        var waiting = [root]
        while let number = waiting.popLast() {
            guard let page = file.page(number) else { continue }
            for below in TreePage(page, number: number).pagesBelow
            where roots.indices.contains(Int(below)) && roots[Int(below)] == 0 {
                roots[Int(below)] = root
                waiting.append(below)
            }
        }
    }

    /// Notes the pages whose way to a root leads through damaged pages. All roots must be claimed.
    mutating func adopt() {
        for number in 2..<max(2, roots.count) where roots[number] == 0 {
            var place = number
            for _ in 0..<Self.mostLevels where kinds[place] == Kind.below {
                place = Int(above[place])
                guard roots.indices.contains(place) else { break }
                guard roots[place] == 0 else {
                    roots[number] = roots[place]
                    break
                }
            }
        }
    }
}
