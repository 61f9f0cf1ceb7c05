import Credentials
import Glibc
import SystemFiles
import Testing

@Suite("FileRefusals")
struct FileRefusalTests {
    private static func failure(_ code: CInt) -> PasswordFileError {
        .system(SystemError(call: "open", subject: "/users", code: code))
    }

    @Test("permanent errors are told from transient ones")
    func transience() {
        for code in [EMFILE, ENFILE, ENOMEM, EIO] {
            #expect(Self.failure(code).isTransient, "\(code)")
        }
        for code in [EACCES, EPERM, ELOOP, ENOTDIR, EISDIR] {
            #expect(!Self.failure(code).isTransient, "\(code)")
        }
        #expect(!PasswordFileError.missing(path: "/users").isTransient)
        #expect(!TokenFileError.malformed(path: "/tokens", []).isTransient)
    }

    @Test("all refusals are kept, in order, and a value passes through")
    func collecting() throws {
        var refusals = FileRefusals()
        let value = refusals.collect { () throws(PasswordFileError) in 7 }
        #expect(value == 7)
        #expect(refusals.problems.isEmpty)
        for code in [EMFILE, EACCES] {
            let none = refusals.collect { () throws(PasswordFileError) -> Int in
                throw Self.failure(code)
            }
            #expect(none == nil)
        }
        #expect(refusals.problems.map { $0.contains("EMFILE") } == [true, false])
        #expect(refusals.description == refusals.problems.joined(separator: "\n"))
    }

    @Test("together they may pass only if each may")
    func togetherTransient() {
        var refusals = FileRefusals()
        _ = refusals.collect { () throws(PasswordFileError) in throw Self.failure(EMFILE) }
        #expect(refusals.isTransient)
        _ = refusals.collect { () throws(TokenFileError) in throw .missing(path: "/tokens") }
        #expect(!refusals.isTransient)
        _ = refusals.collect { () throws(PasswordFileError) in throw Self.failure(EMFILE) }
        #expect(!refusals.isTransient)
    }
}
