import Glibc
import HermesTesting
import SystemFiles
import Testing

@Suite("WholeFile")
struct WholeFileTests {
    private func failure(_ path: String, maximumByteCount: Int = 100) -> WholeFile.Failure? {
        do throws(WholeFile.Failure) {
            _ = try WholeFile(path, maximumByteCount: maximumByteCount)
            return nil
        } catch {
            return error
        }
    }

    @Test("gives bytes, permission bits and owner")
    func contents() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("abc", to: "file", mode: 0o640)
        for isSecret in [false, true] {
            let file = try WholeFile(path, maximumByteCount: 3, isSecret: isSecret)
            #expect(file.bytes == Array("abc".utf8))
            #expect(file.status.mode == 0o640)
            #expect(file.status.owner == geteuid())
        }
    }

    @Test("refuses what is missing, no regular file, or too large, without waiting for a FIFO")
    func refusals() throws {
        let folder = try TemporaryFolder()
        try folder.write("abcd", to: "file")
        try #require(mkfifo(folder.file("fifo"), 0o600) == 0)
        #expect(failure(folder.file("none")) == .missing)
        #expect(failure(folder.file("fifo")) == .notRegularFile(isFolder: false))
        #expect(failure(folder.path) == .notRegularFile(isFolder: true))
        #expect(failure(folder.file("file"), maximumByteCount: 3) == .tooLarge(byteCount: 4))
        #expect(failure(folder.file("file"), maximumByteCount: 4) == nil)
        #expect(
            failure("\(folder.file("file"))/x")
                == .system(
                    SystemError(
                        call: "open", subject: "\(folder.file("file"))/x", code: ENOTDIR)))
    }

    @Test("follows a link of this user to a file of this user, and no stranger's")
    func links() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("abc", to: "file")
        let link = folder.file("link")
        try #require(symlink(path, link) == 0)
        #expect(failure(link) == nil)
        #expect(throws: Never.self) { try WholeFile.checkLink(link) }
        // Only root can give a link away.
        guard geteuid() == 0 else { return }
        try #require(lchown(link, 4_711, 4_711) == 0)
        #expect(failure(link) == .foreignLink(owner: 4_711))
        #expect(throws: WholeFile.Failure.foreignLink(owner: 4_711)) {
            try WholeFile.checkLink(link)
        }
        try #require(lchown(link, 0, 0) == 0 && chown(path, 4_711, 4_711) == 0)
        #expect(failure(link) == .foreignLink(owner: 4_711))
        #expect(throws: WholeFile.Failure.foreignLink(owner: 4_711)) {
            try WholeFile.checkLink(link)
        }
    }

    @Test("secret bytes can be overwritten")
    func erasing() {
        var bytes: [UInt8] = [1, 2, 3]
        bytes.erase()
        #expect(bytes == [0, 0, 0])
    }
}

@Suite("Changes of files")
struct FileChangeTests {
    private enum Refusal: Error, Equatable { case locked(String), failed(SystemError), ours }

    private func change(
        _ path: String, _ change: (String) throws(Refusal) -> (contents: [UInt8]?, result: Int)
    ) throws(Refusal) -> Int {
        try FileChange.underLock(
            path, lockTimeout: .milliseconds(20),
            describing: { failure in
                switch failure {
                case .busy(let path): .locked(path)
                case .system(let error): .failed(error)
                }
            }, change)
    }

    @Test("new contents replace the old ones under another inode, with mode and link kept")
    func replacing() throws {
        let folder = try TemporaryFolder()
        try folder.write("old", to: "file", mode: 0o640)
        try #require(symlink("file", folder.file("link")) == 0)
        let before = try folder.status("file").st_ino
        let result = try change(folder.file("link")) { _ in (Array("new".utf8), 7) }
        #expect(result == 7)
        #expect(try folder.read("file") == "new")
        #expect(try folder.status("file").st_ino != before)
        #expect(try folder.status("file").st_mode & 0o777 == 0o640)
        #expect(try folder.status("link").st_mode & S_IFMT == S_IFLNK)
        #expect(folder.contents == ["file", "file.lock", "link"])
    }

    @Test("a refused change, or one without contents, leaves the file and frees the lock")
    func refused() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("old", to: "file")
        #expect(throws: Refusal.ours) { try change(path) { _ throws(Refusal) in throw .ours } }
        #expect(try change(path) { _ in (nil, 1) } == 1)
        #expect(try folder.read("file") == "old")
    }

    @Test("a lock has one holder at a time and ends with the value")
    func lock() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("lock")
        func take(creating: Bool) throws -> Bool {
            guard let lock = try FileLock.take(path, creating: creating) else { return false }
            return try lock.whileHeld { try FileLock.take(path, creating: false) == nil }
        }
        #expect(throws: SystemError.self) { _ = try take(creating: false) }
        #expect(try take(creating: true))
        #expect(try take(creating: false), "it is free again")
    }
}
