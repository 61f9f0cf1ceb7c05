/// What a start finds in a journal's directory, by the headers of the files.
struct FoundFiles {
    struct Unidentified: Sendable {
        var file: SegmentFile
        var reason: JournalDamage.Kind
    }

    /// With numbers that the database does not have, rising.
    private(set) var segments: [Segment] = []
    /// Never used, or in the database.
    private(set) var unused: [SegmentFile] = []
    private(set) var unidentified: [Unidentified] = []
    /// Paths of what was set aside before.
    let setAside: [String]
    /// The highest number in a header; 0 is none.
    private(set) var highestNumber: UInt64 = 0
    /// The highest index in a name; 0 is none.
    let highestIndex: Int

    /// Opens all journal files, and deletes those that were never finished.
    ///
    /// - Throws: `.newerFormat` if a newer version of this program wrote a file.
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
