/// One page of a tree of rows.
struct TreePage {
    /// The first byte of a page's header.
    private enum Kind: UInt8 {
        case keysAbove = 2
        case rowsAbove = 5
        case keys = 10
        case rows = 13
    }

    /// The first page begins with the header of the file.
    private static let fileHeader = 100
    /// A row above this size is damage; the largest payload is 256 MiB.
    private static let mostBytes: UInt64 = 1 << 30

    private let page: [UInt8]
    private let kind: Kind?
    /// The places of the cells in the page.
    private var cells: [Int] = []
    private var last: UInt32?

    init(_ page: [UInt8], number: UInt32) {
        self.page = page
        let header = number == 1 ? Self.fileHeader : 0
        kind = Kind(rawValue: page[header])
        guard let kind, let count = page.number(at: header + 3, bytes: 2) else { return }
        let isAbove = kind == .keysAbove || kind == .rowsAbove
        if isAbove { last = page.pageNumber(at: header + 8) }
        let first = header + (isAbove ? 12 : 8)
        cells = (0..<Int(count)).compactMap {
            page.number(at: first + 2 * $0, bytes: 2).map { Int($0) }
        }
    }

    /// The pages that this one names, unless it is a leaf.
    var pagesBelow: [UInt32] {
        guard let last else { return [] }
        return cells.compactMap { page.pageNumber(at: $0) } + [last]
    }

    /// Calls `body` for each row in this page, with the number of its row if the table has these. A row
    /// whose other pages are damaged is `nil`.
    func forEachRow(
        _ file: inout PageFile, _ body: (StoredRow?) throws(StoreFailure) -> Void
    ) throws(StoreFailure) {
        switch kind {
        case nil, .rowsAbove: return
        case .keys, .keysAbove, .rows:
            for cell in cells { try body(row(at: cell, &file)) }
        }
    }

    private func row(at cell: Int, _ file: inout PageFile) -> StoredRow? {
        var place = kind == .keysAbove ? cell + 4 : cell
        guard let size = page.varint(at: &place), size <= Self.mostBytes else { return nil }
        var number: Int64?
        if kind == .rows {
            guard let value = page.varint(at: &place) else { return nil }
            number = Int64(bitPattern: value)
        }
        guard let bytes = payload(Int(size), at: place, &file) else { return nil }
        return StoredRow(bytes, number: number)
    }

    /// The bytes of a row, of which pages of its own hold what is too much for this one.
    private func payload(_ size: Int, at place: Int, _ file: inout PageFile) -> [UInt8]? {
        let usable = PageFile.usable
        let most = kind == .rows ? usable - 35 : (usable - 12) * 64 / 255 - 23
        let least = (usable - 12) * 32 / 255 - 23
        var local = size
        if size > most {
            let fitting = least + (size - least) % (usable - 4)
            local = fitting <= most ? fitting : least
        }
        guard place + local <= page.count else { return nil }
        var bytes = Array(page[place..<place + local])
        var next = page.pageNumber(at: place + local)
        while bytes.count < size {
            guard let number = next, let further = file.page(number) else { return nil }
            next = further.pageNumber(at: 0)
            bytes += further[4..<4 + min(size - bytes.count, usable - 4)]
        }
        return bytes
    }
}
