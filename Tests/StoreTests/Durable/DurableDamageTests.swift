import Glibc
import HermesTesting
import Testing
import Threads

@testable import Store

@Suite("Durable store on damaged, newer and read-only files")
struct DurableDamageTests {
    @Test("damage is set aside, reported until the operator accepts it, and costs nothing else")
    func damagedFrame() throws {
        let folder = try folderWithMessages(12)
        // In the middle of the first frames: later frames prove that they were synced.
        let name = try #require(folder.journalNames.first)
        folder.damage(name, at: 3 * 4_096 + 60)

        let store = try SteppedStore(in: folder)
        #expect(store.store.recovery.report.damageCount == 1)
        let model = try #require(try store.restoredModel())
        #expect(model.sessions[1]?.queue.count == 11)
        let record = store.store.figures.damageRecords
        #expect(record.count == 1 && record[0].contains("journal-1.segment"))
        // Its file is needed until the rest of it has been moved.
        store.settle()
        #expect(store.store.figures.setAsideFiles.count == 1)
        let reason = try #require(store.store.figures.notReadyReason)
        #expect(reason.contains("damaged-1.segment") && reason.contains("accept-loss"))
        // The store still accepts records.
        #expect(store.store.isAccepting)
        store.submit(message: 100)
        store.commit()
        #expect(store.completed == [1])
        // A restart does not accept the damage either.
        #expect(store.close())
        let next = try SteppedStore(in: folder)
        #expect(next.store.recovery.report.damageCount == 0)
        #expect(next.store.figures.notReadyReason == reason)

        let replies = try WorkQueue<[String]>(name: "replies")
        next.store.acceptLoss { replies.post($0) }
        next.commit()
        #expect(replies.takeAll(waitMilliseconds: 0)?.first?.count == 2, "the file, the record")
        #expect(next.store.figures.notReadyReason == nil)
        #expect(folder.journalNames.contains("damaged-1.segment.accepted"))
    }

    @Test("a loss that is accepted before the rest of its segment has moved stays accepted")
    func acceptedEarly() throws {
        let folder = try folderWithMessages(12)
        let name = try #require(folder.journalNames.first)
        folder.damage(name, at: 3 * 4_096 + 60)
        let store = try SteppedStore(in: folder)
        #expect(store.store.figures.notReadyReason?.contains("accept-loss") == true)
        let record = "\(folder.path)/damage.txt"
        store.store.acceptLoss { #expect($0 == [record]) }
        store.commit()
        #expect(store.store.figures.notReadyReason == nil)
        store.settle()
        #expect(folder.journalNames.contains("damaged-1.segment.accepted"))
        #expect(store.store.figures.notReadyReason == nil)
        #expect(store.close())
        #expect(try SteppedStore(in: folder).store.figures.notReadyReason == nil)
    }

    @Test("a missing segment is reported until the operator accepts it")
    func missingSegment() throws {
        let folder = DurableFolder()
        let store = try SteppedStore(in: folder)
        for number: UInt64 in 1...40 {
            store.submit(message: number, payload: 2_000)
            store.commit()
        }
        let copy = folder.copyAfterCrash()
        let name = try #require(
            store.committer.journal.segments.first?.file.path.split(separator: "/").last)
        try #require(unlink("\(copy.journal)/\(name)") == 0)
        let next = try SteppedStore(in: copy)
        #expect(next.store.recovery.report.damage.map(\.kind) == [.missingSegments])
        next.settle()
        #expect(next.store.figures.notReadyReason?.contains("accept-loss") == true)
        #expect(next.store.isAccepting)
        #expect(next.close())
        // Only the recorded damage still shows it.
        let last = try SteppedStore(in: copy)
        #expect(last.store.recovery.report.damageCount == 0)
        #expect(last.store.figures.notReadyReason?.contains("is missing") == true)
        let record = "\(copy.path)/damage.txt"
        last.store.acceptLoss { #expect($0 == [record]) }
        last.commit()
        #expect(last.store.figures.notReadyReason == nil)
        let left = try StoredDamage(in: copy.path)
        #expect(left.isEmpty)
    }

    @Test("a database that cannot be opened keeps it from starting until the loss is accepted")
    func unreadableDatabase() throws {
        let folder = try folderWithMessages(3)
        DatabaseFolder.write(
            Array(repeating: 0x5A, count: 8_192), to: "\(folder.path)/hermes.sqlite")
        // Its write-ahead log would hold every page.
        _ = unlink("\(folder.path)/hermes.sqlite-wal")
        for _ in 1...2 {
            do throws(StoreFailure) {
                _ = try DurableStore(
                    directory: folder.path, options: DurableStoreOptions(), wake: {})
                Issue.record("it opened")
            } catch {
                #expect(error.kind == .damaged)
                #expect("\(error)".contains("store accept-loss --data-directory '\(folder.path)'"))
            }
            #expect(DatabaseFolder.read("\(folder.path)/hermes.sqlite").count == 8_192)
        }
        let kept = "\(folder.path)/damaged-1"
        let accepted = try StoredDamage.accept(in: folder.path)
        #expect(accepted == [kept, "\(folder.path)/damage.txt"])
        #expect(DatabaseFolder.read("\(kept)/hermes.sqlite").count == 8_192)
        #expect(access("\(kept)/journal/journal-1.segment", F_OK) == 0)
        let last = try SteppedStore(in: folder)
        #expect(try #require(try last.restoredModel()).sessions.isEmpty)
        #expect(last.store.figures.notReadyReason == nil)
    }

    @Test("a database that was restored after a refused start stays where it is")
    func restoredDatabase() throws {
        let folder = try folderWithMessages(3)
        let path = "\(folder.path)/hermes.sqlite"
        let good = DatabaseFolder.read(path)
        _ = unlink("\(path)-wal")
        DatabaseFolder.write(Array(repeating: 0x5A, count: 8_192), to: path)
        #expect(throws: StoreFailure.self) {
            try DurableStore(directory: folder.path, options: DurableStoreOptions(), wake: {})
        }
        DatabaseFolder.write(good, to: path)
        #expect(try StoredDamage.accept(in: folder.path) == [])
        #expect(access("\(folder.path)/damaged-1", F_OK) != 0)
        #expect(access("\(folder.path)/unreadable", F_OK) != 0)
    }

    @Test("a damaged queue is reported, and everything else continues")
    func damagedQueue() throws {
        let folder = DurableFolder()
        let store = try SteppedStore(in: folder)
        store.submit(message: 1, payload: 100)
        store.commit()
        #expect(store.close())
        do {
            let connection = try SQLiteConnection.open(
                "\(folder.path)/hermes.sqlite", .readWrite, cacheBytes: 100_000)
            try connection.execute("UPDATE queue SET shared = 1", "damage")
        }
        let next = try SteppedStore(in: folder)
        #expect(next.store.figures.notReadyReason == nil)
        #expect(throws: (any Error).self) { try next.wholeQueueItems() }
        #expect(next.store.figures.notReadyReason?.contains("message 1") == true)
        #expect(next.store.isAccepting)
        let damage = try StoredDamage(in: folder.path)
        #expect(damage.records.count == 1)
    }

    @Test("a message larger than a segment is stored, read and recovered")
    func largeMessage() throws {
        let folder = DurableFolder()
        let store = try SteppedStore(in: folder)
        store.submit(message: 1, payload: 300_000)
        store.submit(message: 2)
        store.commit()
        #expect(store.completed == [1, 2])
        let expected = [testPayload(1, 300_000), testPayload(2, 100)]
        #expect(try store.wholeQueueItems().map(\.payload) == expected)
        let next = try SteppedStore(in: folder.copyAfterCrash())
        #expect(try next.wholeQueueItems().map(\.payload) == expected)
        store.settle()
        #expect(try store.wholeQueueItems().map(\.payload) == expected)
    }

    @Test("files of a newer version are left alone", arguments: ["journal", "database"])
    func newerFormat(part: String) throws {
        let folder = try folderWithMessages(3)
        if part == "journal" {
            try Self.makeNewer("\(folder.journal)/\(try #require(folder.journalNames.first))")
        } else {
            let connection = try SQLiteConnection.open(
                "\(folder.path)/hermes.sqlite", .readWrite, cacheBytes: 100_000)
            try connection.execute("PRAGMA user_version = 99", "write")
        }
        let failure = #expect(throws: StoreFailure.self) {
            try DurableStore(directory: folder.path, options: .small()) {}
        }
        #expect(failure?.kind == .newerFormat)
        #expect(failure?.cure?.contains("newer version") == true)
    }

    @Test(
        "a folder that cannot be written to is refused", .enabled(if: TestVolume.isPermitted),
        arguments: [false, true])
    func readOnly(isNew: Bool) throws {
        let volume = try TestVolume(bytes: 4 << 20)
        let path = volume.path + "/data"
        try #require(mkdir(path, 0o700) == 0)
        if !isNew {
            #expect(try SteppedStore(at: path, options: .small()).close())
        }
        try volume.makeReadOnly()
        let failure = #expect(throws: StoreFailure.self) {
            try DurableStore(directory: path, options: .small()) {}
        }
        #expect(failure?.kind == .permissions)
    }

    /// A folder as after a crash, with an empty database.
    private func folderWithMessages(_ count: UInt64) throws -> DurableFolder {
        let folder = DurableFolder()
        let store = try SteppedStore(in: folder)
        for number in 1...count {
            store.submit(message: number)
            store.commit()
        }
        return folder.copyAfterCrash()
    }

    /// Sets an unknown version in both copies of a segment's header.
    private static func makeNewer(_ path: String) throws {
        var bytes = DatabaseFolder.read(path)
        for offset in [0, SegmentFormat.headerCopyOffset] {
            bytes[offset + 8] = 9
            let sum = bytes.withUnsafeBytes {
                crc32c(0, UnsafeRawBufferPointer(rebasing: $0[offset..<offset + 60]))
            }
            for index in 0..<4 {
                bytes[offset + 60 + index] = UInt8(truncatingIfNeeded: sum >> (8 * index))
            }
        }
        DatabaseFolder.write(bytes, to: path)
    }
}
