/// The files that a start finds in a journal's directory, sorted by their headers.
struct FoundFiles {
    struct Unidentified: Sendable {
        var file: SegmentFile
        var reason: JournalDamage.Kind
    }

    /// Segments that the database does not have, by rising number.
    private(set) var segments: [Segment] = []
    /// Files that were never used, or whose segment the database has.
    private(set) var unused: [SegmentFile] = []
    private(set) var unidentified: [Unidentified] = []
    /// Paths of damaged files that an earlier start set aside.
    let setAside: [String]
    /// The highest segment number in a header; 0 for none.
    private(set) var highestNumber: UInt64 = 0
    /// The highest index in a file name; 0 for none.
    let highestIndex: Int

    /// Opens all journal files and deletes those that were never finished.
    ///
    /// - Throws: `.newerFormat` if a newer version of this program wrote a file; a failure to list,
    ///   open or read.
    init(in directory: JournalDirectory, appliedSegment: UInt64) throws(StoreFailure) {
        let names = try directory.list()
        for name in names.unfinished { SegmentFile.remove("\(directory.path)/\(name)") }
        setAside = names.setAside.map { "\(directory.path)/\($0)" }
        highestIndex = names.segments.last ?? 0
        for index in names.segments {
            let file = try SegmentFile.open(directory.path(ofSegment: index))
            switch try Self.readHeader(of: file) {
            case .blank: unused.append(file)
            case .unreadable:
                unidentified.append(Unidentified(file: file, reason: .unreadableHeader))
            case .newer(let version): throw Self.newerFormat(version, file.path)
            case .header(let header):
                highestNumber = max(highestNumber, header.number)
                if header.number <= appliedSegment {
                    unused.append(file)
                } else if segments.contains(where: { $0.header.number == header.number }) {
                    unidentified.append(Unidentified(file: file, reason: .duplicateSegment))
                } else {
                    segments.append(Segment(header: header, file: file))
                }
            }
        }
        segments.sort { $0.header.number < $1.header.number }
    }

    private static func readHeader(
        of file: SegmentFile
    ) throws(StoreFailure) -> SegmentHeader.Reading {
        let block = UnsafeMutableRawBufferPointer.allocate(
            byteCount: SegmentFormat.blockSize, alignment: 8)
        defer { block.deallocate() }
        let count = try file.read(at: 0, into: block)
        return SegmentHeader.read(UnsafeRawBufferPointer(rebasing: block[..<count]))
    }

    private static func newerFormat(_ version: UInt32, _ path: String) -> StoreFailure {
        StoreFailure(
            operation: "read", path: path,
            reason: "it has format \(version), and this program knows up to "
                + "\(SegmentFormat.version)",
            kind: .newerFormat,
            cure: "Start the newer version of this program that wrote it, or use another data "
                + "directory.")
    }
}
