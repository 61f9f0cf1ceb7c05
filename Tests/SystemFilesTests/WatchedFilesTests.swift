import Glibc
import HermesTesting
import SystemFiles
import Testing

@Suite("FileStamp")
struct FileStampTests {
    @Test("a stamp changes with the mode, which mending a file changes")
    func mode() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("a", to: "file", mode: 0o666)
        let before = FileStamp(of: path)
        #expect(FileStamp(of: path) == before)
        // File timestamps advance in steps of the kernel's clock.
        while try !hasMoved(folder, since: path) {}
        chmod(path, 0o600)
        #expect(FileStamp(of: path) != before)
    }

    /// True once a file changed now gets a later timestamp than this file.
    private func hasMoved(_ folder: TemporaryFolder, since path: String) throws -> Bool {
        var (old, new) = (stat(), stat())
        try #require(stat(path, &old) == 0)
        stat(try folder.write("b", to: "clock"), &new)
        let (then, now) = (old.st_mtim, new.st_mtim)
        return (now.tv_sec, now.tv_nsec) > (then.tv_sec, then.tv_nsec)
    }

    @Test("is none without a file")
    func missing() throws {
        #expect(FileStamp(of: try TemporaryFolder().file("none")) == nil)
    }
}

@Suite("WatchedFiles")
struct WatchedFilesTests {
    /// A class, because `#expect` cannot call mutating methods.
    private final class Subject {
        private var files = WatchedFiles(inUse: 1)

        func isChanged(by stamp: Int) -> Bool { files.isChanged(by: stamp) }
        func use(_ stamp: Int) { files.use(stamp) }

        func isDue(_ stamp: Int, at now: ContinuousClock.Instant) -> Bool {
            files.isDue(stamp, at: now)
        }

        func refuse(_ stamp: Int, _ problem: String, at now: ContinuousClock.Instant) -> Bool {
            files.refuse(stamp, problem, at: now)
        }
    }

    private let start = ContinuousClock.now
    private let files = Subject()

    @Test("files are read when they are others than those in use")
    func due() {
        #expect(!files.isDue(1, at: start))
        #expect(files.isDue(2, at: start))
        files.use(2)
        #expect(!files.isDue(2, at: start))
        #expect(files.isDue(1, at: start))
    }

    @Test("a rejected file leaves the stamp in use, so that a reload sees the change")
    func refusalIsNotUse() {
        #expect(files.refuse(2, "bad", at: start))
        #expect(files.isChanged(by: 2))
        #expect(!files.isChanged(by: 1))
    }

    @Test("refused files are read again when they change, or a second later")
    func retry() {
        _ = files.refuse(2, "bad", at: start)
        #expect(!files.isDue(2, at: start + .milliseconds(999)))
        #expect(files.isDue(2, at: start + .seconds(1)))
        #expect(files.isDue(3, at: start))
        _ = files.refuse(2, "bad", at: start + .seconds(1))
        #expect(!files.isDue(2, at: start + .milliseconds(1_999)))
    }

    @Test("a refusal is said once, and again when files or problem are others")
    func news() {
        #expect(files.refuse(2, "bad", at: start))
        #expect(!files.refuse(2, "bad", at: start + .seconds(1)))
        #expect(files.refuse(2, "worse", at: start + .seconds(2)))
        #expect(files.refuse(3, "worse", at: start + .seconds(3)))
    }

    @Test("a refusal is forgotten once the files in use are back")
    func back() {
        #expect(files.refuse(2, "bad", at: start))
        #expect(!files.isDue(1, at: start))
        #expect(files.isDue(2, at: start))
        #expect(files.refuse(2, "bad", at: start))
    }
}
