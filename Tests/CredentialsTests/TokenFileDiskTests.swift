import Glibc
import HermesTesting
import Testing

@testable import Credentials

@Suite("TokenFile on disk")
struct TokenFileDiskTests {
    private func add(_ name: String, to path: String) throws -> TokenFile.Addition {
        let entry = try tokenEntry(name)
        return try TokenFile.update(path: path, creating: true) { $0.add(entry) }
    }

    /// Other users can neither read nor write a new file, whatever the umask.
    @Test("a new file has mode 0600 under the laxest umask; no temporary file stays behind")
    func create() throws {
        let folder = try TemporaryFolder()
        #expect(try add("billing", to: folder.file("tokens")) == .added)
        #expect(try folder.status("tokens").st_mode & 0o777 == 0o600)
        #expect(folder.contents == ["tokens", "tokens.lock"])
        let file = try TokenFile.load(path: folder.file("tokens"))
        #expect(file.entries.map(\.name.text) == ["billing"])
        #expect(file.accessWarning == nil)
    }

    @Test("a name that is taken changes nothing")
    func taken() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("tokens")
        _ = try add("billing", to: path)
        let before = try folder.status("tokens").st_ino
        #expect(try add("billing", to: path) == .nameTaken)
        #expect(try folder.status("tokens").st_ino == before)
    }

    @Test(
        "a file that others may write is refused with its cure", arguments: [0o620, 0o602, 0o666])
    func writable(mode: mode_t) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("", to: "tokens", mode: mode)
        let error = #expect(throws: TokenFileError.self) { try TokenFile.load(path: path) }
        #expect(error?.description.contains("chmod 600 '\(path)'") == true)
    }

    @Test("a file that others may read is taken with a warning, one of the group's without")
    func readable() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("", to: "tokens", mode: 0o644)
        #expect(try TokenFile.load(path: path).accessWarning?.contains("mode 0644") == true)
        chmod(path, 0o640)
        #expect(try TokenFile.load(path: path).accessWarning == nil)
    }

    @Test("a missing file, a folder, a FIFO and a file that is too large are told apart")
    func noFile() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("tokens")
        #expect(throws: TokenFileError.missing(path: path)) { try TokenFile.load(path: path) }
        #expect(throws: TokenFileError.notRegularFile(path: folder.path)) {
            try TokenFile.load(path: folder.path)
        }
        #expect(mkfifo(path, 0o600) == 0)
        #expect(throws: TokenFileError.notRegularFile(path: path)) {
            try TokenFile.load(path: path)
        }
        let large = try folder.write("", to: "large")
        #expect(truncate(large, TokenFile.maximumByteCount + 1) == 0)
        let byteCount = TokenFile.maximumByteCount + 1
        #expect(throws: TokenFileError.tooLarge(path: large, byteCount: byteCount)) {
            try TokenFile.load(path: large)
        }
    }

    @Test("of forty concurrent additions none is lost")
    func concurrentAdditions() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("tokens")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    let entry = try tokenEntry("t\(number)")
                    _ = try TokenFile.update(path: path, creating: true) { file in
                        // Longer than the start of a task, so that changes overlap.
                        usleep(2_000)
                        return file.add(entry)
                    }
                }
            }
            try await group.waitForAll()
        }
        let names = try TokenFile.load(path: path).entries.map(\.name.text)
        #expect(Set(names) == Set((0..<40).map { "t\($0)" }))
        #expect(folder.contents == ["tokens", "tokens.lock"])
    }
}

/// Symbolic links of other users are not followed.
@Suite("Symbolic links of credential files")
struct CredentialLinkTests {
    @Test("one's own link to one's own file is followed")
    func own() throws {
        let folder = try TemporaryFolder()
        try folder.write("", to: "real")
        symlink("real", folder.file("tokens"))
        symlink("real", folder.file("users"))
        #expect(try TokenFile.load(path: folder.file("tokens")).entries.isEmpty)
        #expect(try PasswordFile.load(path: folder.file("users")).entries.isEmpty)
    }

    @Test(
        "a link of another user, and one to another user's file, are refused by name",
        .enabled(if: geteuid() == 0, "only root can give files away"))
    func foreign() throws {
        let folder = try TemporaryFolder()
        let stranger: uid_t = 65_534
        try folder.write("", to: "real")
        symlink("real", folder.file("planted"))
        #expect(lchown(folder.file("planted"), stranger, stranger) == 0)
        let theirs = try folder.write("", to: "theirs")
        #expect(chown(theirs, stranger, stranger) == 0)
        symlink("theirs", folder.file("astray"))
        for name in ["planted", "astray"] {
            let path = folder.file(name)
            #expect(throws: TokenFileError.foreignLink(path: path, owner: stranger)) {
                try TokenFile.load(path: path)
            }
            #expect(throws: PasswordFileError.foreignLink(path: path, owner: stranger)) {
                try PasswordFile.load(path: path)
            }
            // The file behind it stays unchanged.
            #expect(throws: TokenFileError.foreignLink(path: path, owner: stranger)) {
                try TokenFile.update(path: path, creating: true) { _ in }
            }
            #expect(throws: PasswordFileError.foreignLink(path: path, owner: stranger)) {
                try PasswordFile.update(path: path, creating: true) { _ in }
            }
        }
        #expect(!folder.contents.contains { $0.hasSuffix(".lock") })
        unlink(folder.file("planted"))
    }
}
