import CCheckedPages
import Glibc
import SystemFiles

/// Reads the pages of a database file that SQLite cannot read as a whole, one by one.
///
/// The format is that of sqlite.org/fileformat2.html. No other program may write the file meanwhile,
/// and its write-ahead log must be empty.
struct PageFile: ~Copyable {
    /// Bytes of a page without its checksums.
    static let usable = Int(hermes_page_bytes - hermes_page_reserved)
    /// The page at this byte is never used, because SQLite locks it.
    private static let lockByte = 1 << 30

    private let file: OpenFile
    /// The number of the last page; pages count from 1.
    let count: UInt32
    /// Pages that were read and could not be corrected, nor read at all.
    private(set) var damaged: Set<UInt32> = []

    init(_ path: String) throws(StoreFailure) {
        let file = try Self.open(path)
        let there = try Self.pageCount(of: file)
        // Pages that the end of the file has lost are damaged.
        count = max(there, Self.header(of: file).flatMap(Self.toldCount) ?? 0)
        self.file = file
    }

    /// What the first page says of the checksums of all.
    enum Sums {
        case there
        /// A program without them has written the file.
        case none
        /// It is not the first page of a database.
        case unknown
    }

    /// What the first page says of checksums, which it is asked before the file changes.
    func sums() -> Sums {
        guard var page = Self.page(1, of: file) else { return .unknown }
        // Flipped bits are corrected before it is believed.
        _ = hermes_page_verify(&page)
        guard page.starts(with: Array("SQLite format 3\0".utf8)) else { return .unknown }
        let isSealed =
            page.number(at: 16, bytes: 2) == UInt64(hermes_page_bytes)
            && page[20] == UInt8(hermes_page_reserved)
            && page[Self.usable...].contains { $0 != 0 }
        return isSealed ? .there : .none
    }

    /// The first page, corrected; `nil` when it is damaged, or has no checksums.
    private static func header(of file: borrowing OpenFile) -> [UInt8]? {
        guard var page = page(1, of: file), hermes_page_verify(&page) != hermes_page_damaged else {
            return nil
        }
        return page
    }

    /// The number of pages that a header tells; `nil` when a program that does not keep it has written
    /// last.
    private static func toldCount(_ header: [UInt8]) -> UInt32? {
        guard header.number(at: 24, bytes: 4) == header.number(at: 92, bytes: 4) else { return nil }
        return header.pageNumber(at: 28)
    }

    private static func open(_ path: String) throws(StoreFailure) -> OpenFile {
        do throws(SystemError) {
            return try OpenFile(path, flags: O_RDONLY | O_NOFOLLOW)
        } catch {
            throw StoreFailure(error)
        }
    }

    private static func pageCount(of file: borrowing OpenFile) throws(StoreFailure) -> UInt32 {
        do throws(SystemError) {
            return UInt32(clamping: Int(try file.status().size) / Int(hermes_page_bytes))
        } catch {
            throw StoreFailure(error)
        }
    }

    /// The page that SQLite's lock makes useless.
    static var lockPage: UInt32 { UInt32(lockByte / Int(hermes_page_bytes) + 1) }

    /// A page; `nil` when it is damaged, or is none of the file's.
    mutating func page(_ number: UInt32) -> [UInt8]? {
        guard number >= 1, number <= count, !damaged.contains(number) else { return nil }
        guard var page = Self.page(number, of: file),
            hermes_page_verify(&page) != hermes_page_damaged
        else {
            damaged.insert(number)
            return nil
        }
        return page
    }

    /// A page as it is in the file; `nil` when not all of it can be read.
    private static func page(_ number: UInt32, of file: borrowing OpenFile) -> [UInt8]? {
        var page = [UInt8](repeating: 0, count: Int(hermes_page_bytes))
        let start = off_t(number - 1) * off_t(hermes_page_bytes)
        let descriptor = file.descriptor
        var filled = 0
        while filled < page.count {
            let (read, _) = page.withUnsafeMutableBytes { bytes in
                let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[filled...])
                return retrying {
                    pread(descriptor, rest.baseAddress, rest.count, start + off_t(filled))
                }
            }
            // A failing disk refuses single pages, too.
            guard read > 0 else { break }
            filled += read
        }
        return filled == page.count ? page : nil
    }
}

extension [UInt8] {
    /// An unsigned number, its most significant byte first; `nil` beyond the end.
    func number(at place: Int, bytes: Int) -> UInt64? {
        guard place >= 0, place + bytes <= count else { return nil }
        return self[place..<place + bytes].reduce(0) { $0 << 8 | UInt64($1) }
    }

    func pageNumber(at place: Int) -> UInt32? {
        number(at: place, bytes: 4).flatMap { UInt32(exactly: $0) }
    }

    /// A number in one to nine bytes, of which all but a ninth hold seven bits; `nil` beyond the end.
    func varint(at place: inout Int) -> UInt64? {
        var value: UInt64 = 0
        for length in 0..<9 {
            guard indices.contains(place) else { return nil }
            let byte = self[place]
            place += 1
            guard length < 8 else { return value << 8 | UInt64(byte) }
            value = value << 7 | UInt64(byte & 0x7F)
            if byte < 0x80 { return value }
        }
        return value
    }
}
