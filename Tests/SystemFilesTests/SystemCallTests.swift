import Glibc
import SystemFiles
import Testing

@Suite("Owned descriptor")
struct OwnedDescriptorTests {
    @Test("closes when it leaves its scope, and not when it is handed on")
    func scope() throws {
        var ends: [CInt] = [0, 0]
        try #require(pipe(&ends) == 0)
        do { _ = OwnedDescriptor(adopting: ends[1]) }
        var byte: UInt8 = 0
        #expect(read(ends[0], &byte, 1) == 0, "the writing end is closed")
        let kept = OwnedDescriptor(adopting: ends[0]).take()
        #expect(kept == ends[0])
        #expect(fcntl(kept, F_GETFD) >= 0, "it is open")
        close(kept)
    }

    @Test("a file that cannot be opened is named with the attempt")
    func opening() throws {
        let error = #expect(throws: SystemError.self) {
            _ = try OwnedDescriptor(opening: "/nonexistent", flags: O_RDONLY)
        }
        #expect(error == SystemError(call: "open", subject: "/nonexistent", code: ENOENT))
    }
}

@Suite("System calls")
struct SystemCallTests {
    @Test("a call that a signal interrupts is made again")
    func interrupted() {
        var calls = 0
        let (result, code) = retrying {
            calls += 1
            errno = EINTR
            return calls < 3 ? -1 : 7
        }
        #expect((result, code, calls) == (7, 0, 3))
    }

    @Test("another failure is returned with its code")
    func failure() {
        let (result, code) = retrying {
            errno = EAGAIN
            return -1
        }
        #expect((result, code) == (-1, EAGAIN))
        let (closed, badDescriptor) = retrying(mayBeClosed: true) { Int(fsync(-1)) }
        #expect((closed, badDescriptor) == (-1, EBADF))
    }

    @Test("a system error says what failed on what, for a log and for the operator")
    func description() {
        let error = SystemError(call: "bind", subject: "127.0.0.1:1883", code: EACCES)
        #expect(error.description == "bind 127.0.0.1:1883: Permission denied")
        let full = SystemError(call: "fsync", subject: "/a\n", code: ENOSPC)
        #expect(
            full.complaint == """
                cannot write to disk "/a\\n": no space left on device (ENOSPC). Free space on that \
                file system and run it again.
                """)
        #expect(SystemError.reason(for: 9_999).hasSuffix("(errno 9999)"))
    }

    @Test("a path has a folder and a name")
    func paths() {
        for (path, folder, name) in [
            ("/etc/users", "/etc", "users"), ("/users", "/", "users"), ("users", ".", "users"),
            ("a/b/c", "a/b", "c"),
        ] {
            #expect(FilePath.folder(of: path) == folder)
            #expect(FilePath.name(of: path) == name)
        }
    }
}
