import Credentials
import Glibc
import HermesTesting
import Testing

@Suite("PasswordFile on disk")
struct PasswordFileDiskTests {
    private func add(_ name: String, to path: String, creating: Bool = true) throws -> Bool {
        let userName = try UserName(name)
        let hash = try cheapHash("secret")
        return try PasswordFile.update(path: path, creating: creating) { file in
            file.set(userName, to: hash)
        }
    }

    @Test("a new file has mode 0600 and holds its user; no temporary file stays behind")
    func create() throws {
        let folder = try TemporaryFolder()
        #expect(try !add("anna", to: folder.file("users")))
        #expect(try folder.status("users").st_mode & 0o777 == 0o600)
        #expect(try folder.status("users.lock").st_mode & 0o777 == 0o600)
        #expect(folder.contents == ["users", "users.lock"])
        let file = try PasswordFile.load(path: folder.file("users"))
        #expect(file.entries.map(\.userName.text) == ["anna"])
        #expect(file.accessWarning == nil)
    }

    @Test("a file that must exist is not created")
    func missing() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("users")
        #expect(throws: PasswordFileError.missing(path: path)) {
            try add("anna", to: path, creating: false)
        }
        #expect(throws: PasswordFileError.missing(path: path)) {
            try PasswordFile.load(path: path)
        }
        #expect(!folder.contents.contains("users"))
    }

    @Test("a malformed file is left as it is")
    func malformedStays() throws {
        let folder = try TemporaryFolder()
        try folder.write("anna\n", to: "users")
        #expect(throws: PasswordFileError.self) { try add("berta", to: folder.file("users")) }
        #expect(try folder.read("users") == "anna\n")
    }

    @Test("mode and symbolic link survive a change")
    func modeAndLink() throws {
        let folder = try TemporaryFolder()
        try folder.write("# phones\n", to: "real", mode: 0o640)
        symlink("real", folder.file("users"))
        _ = try add("anna", to: folder.file("users"))
        #expect(try folder.status("users").st_mode & S_IFMT == S_IFLNK)
        #expect(try folder.status("real").st_mode & 0o777 == 0o640)
        #expect(try folder.read("real").hasPrefix("# phones\nanna:$argon2id$"))
    }

    @Test("nothing is written when nothing changes")
    func unchanged() throws {
        let folder = try TemporaryFolder()
        try folder.write("# no line end", to: "users")
        let before = try folder.status("users").st_ino
        let nobody = try UserName("nobody")
        let removed = try PasswordFile.update(path: folder.file("users"), creating: false) { file in
            file.remove(nobody)
        }
        #expect(!removed)
        #expect(try folder.status("users").st_ino == before)
    }

    @Test(
        "warns when others can read the file or the group can write it",
        arguments: [
            (0o600, false), (0o400, false), (0o640, false), (0o644, true), (0o660, true),
            (0o602, true),
        ] as [(mode_t, Bool)])
    func access(mode: mode_t, warns: Bool) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("", to: "users", mode: mode)
        let warning = try PasswordFile.load(path: path).accessWarning
        #expect((warning != nil) == warns)
        if let warning {
            #expect(warning.contains("mode 0\(String(mode, radix: 8))"))
            #expect(warning.contains("chmod 600 '\(path)'"))
        }
    }

    @Test("a folder and a FIFO are refused without waiting")
    func notRegular() throws {
        let folder = try TemporaryFolder()
        let fifo = folder.file("fifo")
        #expect(mkfifo(fifo, 0o600) == 0)
        #expect(throws: PasswordFileError.notRegularFile(path: fifo)) {
            try PasswordFile.load(path: fifo)
        }
        #expect(throws: PasswordFileError.notRegularFile(path: folder.path)) {
            try PasswordFile.load(path: folder.path)
        }
    }

    @Test("a folder that is missing is named with a cure")
    func missingFolder() throws {
        let error = try #require(throws: PasswordFileError.self) {
            try add("anna", to: "/nonexistent/users")
        }
        #expect(
            error.description == """
                cannot open the lock file "/nonexistent/users.lock": no such file or directory \
                (ENOENT). Check the path, or create what is missing.
                """)
    }

    @Test("a lock held by another process ends the wait with an error that names it")
    func locked() throws {
        let folder = try TemporaryFolder()
        let lockPath = folder.file("users.lock")
        let descriptor = open(lockPath, O_RDWR | O_CREAT, 0o600)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        try #require(flock(descriptor, LOCK_EX) == 0)
        #expect(throws: PasswordFileError.locked(lockPath: lockPath)) {
            try PasswordFile.update(
                path: folder.file("users"), creating: true, lockTimeout: .milliseconds(30)
            ) { _ in }
        }
    }

    @Test("of forty concurrent additions none is lost, and readers see whole files only")
    func concurrentAdditions() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("# start\n", to: "users")
        let hash = try cheapHash("secret")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    let userName = try UserName("user\(number)")
                    _ = try PasswordFile.update(path: path, creating: false) { file in
                        // Longer than the start of a task, so that changes overlap.
                        usleep(2_000)
                        file.set(userName, to: hash)
                    }
                    _ = try PasswordFile.load(path: path)
                }
            }
            try await group.waitForAll()
        }
        let file = try PasswordFile.load(path: path)
        #expect(Set(file.entries.map(\.userName.text)) == Set((0..<40).map { "user\($0)" }))
        #expect(try folder.read("users").hasPrefix("# start\n"))
        #expect(folder.contents == ["users", "users.lock"])
    }
}
