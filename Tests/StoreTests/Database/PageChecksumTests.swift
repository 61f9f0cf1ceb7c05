import CCheckedPages
import HermesTesting
import Testing

@testable import Store

@Suite("Checksums of pages")
struct PageChecksumTests {
    private static let pageBytes = Int(hermes_page_bytes)

    private static func flip(_ bit: Int, of bytes: inout [UInt8]) {
        bytes[bit / 8] ^= 1 << UInt8(bit % 8)
    }

    private static func sealedPage(_ random: inout SplitMix64) -> [UInt8] {
        var page = (0..<pageBytes).map { _ in UInt8.random(in: 0...255, using: &random) }
        hermes_page_seal(&page)
        return page
    }

    @Test("the checksums of a page are the same on every machine")
    func vector() {
        var page = (0..<Self.pageBytes).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }
        hermes_page_seal(&page)
        #expect(Array(page.suffix(8)) == [18, 31, 220, 34, 35, 125, 124, 40])
    }

    @Test("one or two flipped bits, wherever they are, are flipped back")
    func corrected() {
        var random = SplitMix64(seed: 1)
        let good = Self.sealedPage(&random)
        let ends = [0, 1, good.count * 8 - 65, good.count * 8 - 33, good.count * 8 - 1]
        for round in 0..<60 {
            var page = good
            let first =
                round < ends.count
                ? ends[round] : Int.random(in: 0..<good.count * 8, using: &random)
            Self.flip(first, of: &page)
            if round % 2 == 1 {
                Self.flip((first + 1 + round * 977) % (good.count * 8), of: &page)
            }
            #expect(hermes_page_verify(&page) == hermes_page_corrected)
            #expect(page == good, "round \(round)")
        }
        var page = good
        #expect(hermes_page_verify(&page) == hermes_page_intact)
    }

    @Test("more damage than two bits is found, and the page stays as it is")
    func found() {
        var random = SplitMix64(seed: 2)
        let good = Self.sealedPage(&random)
        for count in [3, 4, 5, 8, 64, 4_096] {
            var page = good
            for _ in 0..<count {
                Self.flip(Int.random(in: 0..<good.count * 8, using: &random), of: &page)
            }
            let damaged = page
            #expect(hermes_page_verify(&page) == hermes_page_damaged, "\(count) flips")
            #expect(page == damaged)
        }
        for lost in [0..<512, 4_096..<8_192, 12_288..<16_384, 0..<16_384] {
            var page = good
            for index in lost { page[index] = 0 }
            #expect(hermes_page_verify(&page) == hermes_page_damaged, "\(lost) lost")
        }
    }
}

@Suite("Database: damaged pages")
struct DamagedPageTests {
    /// A closed database with three sessions and messages of many sizes.
    private static func folder() throws -> (DatabaseFolder, StoreModel) {
        let folder = DatabaseFolder()
        let database = try Database(directory: folder.path)
        var segment = SegmentBuilder(1)
        var number: UInt64 = 0
        for session in UInt64(1)...3 {
            segment.session(session, "client-\(session)")
            segment.state(session, end: 61)
            segment.subscription(session, "a/\(session)/#", qos: 1)
            for position in UInt64(1)...60 {
                number += 1
                let size = position == 30 ? 50_000 : Int(position) * 20
                segment.message(
                    number, topic: Array("topic/\(number)".utf8),
                    payload: (0..<size).map { UInt8(truncatingIfNeeded: $0 &+ Int(number)) })
                segment.queued(session, position, message: number)
            }
        }
        try segment.apply(to: database)
        try database.checkpoint(cuts: true)
        let model = try #require(try StoreModel(reading: database, folder: folder))
        return (folder, model)
    }

    @Test("a database is the same, or damaged, whatever five bits are flipped", arguments: 1...12)
    func flipped(seed: UInt64) throws {
        let (folder, model) = try Self.folder()
        var random = SplitMix64(seed: seed)
        var bytes = DatabaseFolder.read(folder.file)
        for _ in 0..<5 {
            let bit = Int.random(in: 0..<bytes.count * 8, using: &random)
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
        }
        DatabaseFolder.write(bytes, to: folder.file)
        do {
            let database = try Database(directory: folder.path)
            #expect(try StoreModel(reading: database, folder: folder) == model)
        } catch let error as StoreFailure {
            #expect(error.kind == .damaged, "\(error)")
        }
    }

    @Test("a bit in each page is corrected when it is read, and the check tells")
    func everyPage() throws {
        let (folder, model) = try Self.folder()
        var bytes = DatabaseFolder.read(folder.file)
        for page in stride(from: 0, to: bytes.count, by: Int(hermes_page_bytes)) {
            bytes[page + page / 1_000 % 16_000] ^= 0x10
        }
        DatabaseFolder.write(bytes, to: folder.file)
        let findings = try DatabaseCheck(directory: folder.path).run()
        #expect(findings.count == 1 && findings[0].contains("nothing is lost"), "\(findings)")
        let database = try Database(directory: folder.path)
        #expect(try StoreModel(reading: database, folder: folder) == model)
    }

    @Test("a page that has lost a sector is named, and nothing of it is read")
    func lostSector() throws {
        let (folder, _) = try Self.folder()
        var bytes = DatabaseFolder.read(folder.file)
        // The payload that takes pages of its own.
        let place = try #require(
            bytes.indices.first { index in
                index % 4_096 == 0 && index > 16_384
                    && bytes[index..<index + 64].elementsEqual(
                        (0..<64).map { bytes[index] &+ UInt8($0) })
            })
        for index in place..<place + 4_096 { bytes[index] = 0 }
        DatabaseFolder.write(bytes, to: folder.file)
        let page = place / Int(hermes_page_bytes) + 1
        let database = try Database(directory: folder.path)
        let failure = #expect(throws: StoreFailure.self) {
            _ = try StoreModel(reading: database, folder: folder)
        }
        #expect(failure?.kind == .damaged)
        #expect(failure?.reason == "its page \(page) does not fit its checksum")
        let findings = try DatabaseCheck(directory: folder.path).run()
        #expect(findings.contains("page \(page) does not fit its checksum"), "\(findings)")
    }

    @Test("a file of a program without these checksums is rewritten with them")
    func rewritten() throws {
        let (folder, model) = try Self.folder()
        do {
            let database = try Database(directory: folder.path)
            let isSealed = database.connection.isSealed
            #expect(isSealed)
        }
        // A copy by another program has room for checksums and zeros there.
        var bytes = DatabaseFolder.read(folder.file)
        for page in stride(from: Int(hermes_page_bytes), through: bytes.count, by: 16_384) {
            for index in page - 8..<page { bytes[index] = 0 }
        }
        DatabaseFolder.write(bytes, to: folder.file)
        do {
            let database = try Database(directory: folder.path)
            let isSealed = database.connection.isSealed
            #expect(isSealed)
            #expect(try StoreModel(reading: database, folder: folder) == model)
        }
        var sealed = DatabaseFolder.read(folder.file)
        for page in stride(from: 0, to: sealed.count, by: Int(hermes_page_bytes)) {
            var content = Array(sealed[page..<page + Int(hermes_page_bytes)])
            let state = hermes_page_verify(&content)
            #expect(state == hermes_page_intact, "page \(page / 16_384 + 1)")
            sealed[page + 9_000] ^= 1
        }
        DatabaseFolder.write(sealed, to: folder.file)
        let database = try Database(directory: folder.path)
        #expect(try StoreModel(reading: database, folder: folder) == model)
    }

    @Test("a backup has checksums in all of its pages")
    func backup() throws {
        let (folder, model) = try Self.folder()
        let other = DatabaseFolder()
        do {
            let database = try Database(directory: folder.path)
            let backup = try DatabaseBackup(of: database, to: other.path)
            while try !backup.step(pages: 2).isDone {}
        }
        let bytes = DatabaseFolder.read(other.file)
        for page in stride(from: 0, to: bytes.count, by: Int(hermes_page_bytes)) {
            var content = Array(bytes[page..<page + Int(hermes_page_bytes)])
            let state = hermes_page_verify(&content)
            #expect(state == hermes_page_intact, "page \(page / 16_384 + 1)")
        }
        let database = try Database(directory: other.path)
        #expect(try StoreModel(reading: database, folder: other)?.sessions == model.sessions)
    }
}
