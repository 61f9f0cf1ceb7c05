import Glibc
import HermesTesting

@testable import Store

/// A data directory, removed at the end of the test.
final class DurableFolder {
    /// Removes the database's files and the folder.
    private let root = DatabaseFolder()

    var path: String { root.path }
    var journal: String { "\(path)/journal" }

    deinit {
        for name in Self.names(in: journal) { _ = unlink("\(journal)/\(name)") }
        _ = rmdir(journal)
    }

    /// The names in the journal's directory, sorted.
    var journalNames: [String] { Self.names(in: journal) }

    /// A copy as after the end of the process at this moment.
    func copyAfterCrash() -> DurableFolder {
        let copy = DurableFolder()
        for name in root.names where !name.hasSuffix("-shm") && name != "journal" {
            Self.copy("\(path)/\(name)", to: "\(copy.path)/\(name)")
        }
        _ = mkdir(copy.journal, 0o700)
        for name in journalNames {
            Self.copy("\(journal)/\(name)", to: "\(copy.journal)/\(name)")
        }
        return copy
    }

    /// Drops some blocks written to a segment after its last sync, as a crash of the machine may.
    func loseUnsynced(_ segment: Segment, _ random: inout SplitMix64) {
        let name = segment.file.path.split(separator: "/").last.map(String.init) ?? ""
        guard journalNames.contains(name) else { return }
        var bytes = DatabaseFolder.read("\(journal)/\(name)")
        // The file has been reused, which has overwritten the blocks.
        guard case .header(segment.header) = bytes.withUnsafeBytes(SegmentHeader.read) else {
            return
        }
        var block = segment.syncedEnd / 4_096 * 4_096
        // A synced block is never written again.
        if segment.syncedEnd % 4_096 > 0 { block += 4_096 }
        while block < segment.end {
            if random.once(in: 2) {
                for index in block..<min(block + 4_096, bytes.count) { bytes[index] = 0 }
            }
            block += 4_096
        }
        DatabaseFolder.write(bytes, to: "\(journal)/\(name)")
    }

    /// Changes one byte of a file in the journal's directory.
    func damage(_ name: String, at offset: Int) {
        var bytes = DatabaseFolder.read("\(journal)/\(name)")
        bytes[offset] ^= 0x55
        DatabaseFolder.write(bytes, to: "\(journal)/\(name)")
    }

    private static func copy(_ from: String, to: String) {
        DatabaseFolder.write(DatabaseFolder.read(from), to: to)
    }

    private static func names(in path: String) -> [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}
