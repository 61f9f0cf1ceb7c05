import Credentials
import Synchronization
import Testing

@Suite("RememberingVerifier")
struct RememberingVerifierTests {
    /// A clock that the test sets.
    private final class Clock: Sendable {
        let now = Atomic<UInt64>(1_000)
        func advance(_ milliseconds: UInt64) { now.add(milliseconds, ordering: .relaxed) }
    }

    private let clock = Clock()

    private func users(_ users: [(String, String)]) throws -> PasswordVerifier {
        var file = PasswordFile()
        for (name, password) in users { try file.set(UserName(name), to: cheapHash(password)) }
        return PasswordVerifier(file)
    }

    private func subject(_ users: PasswordVerifier) -> RememberingVerifier {
        RememberingVerifier(users) { [clock] in clock.now.load(ordering: .relaxed) }
    }

    private func recalls(_ verifier: RememberingVerifier, _ name: String, _ password: String)
        -> Bool
    {
        verifier.recall(userName: Array(name.utf8), password: Array(password.utf8))
    }

    private func verifies(
        _ verifier: RememberingVerifier, _ name: String, _ password: String
    ) -> Bool {
        verifier.verify(userName: Array(name.utf8), password: Array(password.utf8))
    }

    @Test("a right password is remembered of its user, and nothing else is")
    func remembersSuccess() throws {
        let verifier = subject(try users([("anna", "one"), ("berta", "two")]))
        #expect(!recalls(verifier, "anna", "one"))
        #expect(verifies(verifier, "anna", "one"))
        #expect(recalls(verifier, "anna", "one"))
        for (name, password) in [
            ("anna", "One"), ("anna", ""), ("anna", "one\0"), ("anna", "two"), ("berta", "one"),
            ("berta", "two"), ("", "one"), ("anna\0", "one"),
        ] {
            #expect(!recalls(verifier, name, password), "\(name) \(password)")
        }
    }

    @Test("the same users read again forget nothing")
    func sameUsers() throws {
        let anna = try users([("anna", "one")])
        let verifier = subject(anna)
        #expect(verifies(verifier, "anna", "one"))
        verifier.use(anna)
        #expect(recalls(verifier, "anna", "one"))
        // The same password under another hash counts as another user.
        verifier.use(try users([("anna", "one")]))
        #expect(!recalls(verifier, "anna", "one"))
    }

    @Test("a wrong password is remembered neither as right nor instead of the right one")
    func remembersNoFailure() throws {
        let verifier = subject(try users([("anna", "one")]))
        #expect(verifies(verifier, "anna", "one"))
        #expect(!verifies(verifier, "anna", "two"))
        #expect(!verifies(verifier, "nobody", "one"))
        #expect(!recalls(verifier, "anna", "two"))
        #expect(!recalls(verifier, "nobody", "one"))
        #expect(recalls(verifier, "anna", "one"))
    }

    @Test("new users clear the cache, also for unchanged users")
    func newUsers() throws {
        let verifier = subject(try users([("anna", "one"), ("berta", "two")]))
        #expect(verifies(verifier, "anna", "one") && verifies(verifier, "berta", "two"))
        verifier.use(try users([("anna", "changed"), ("berta", "two")]))
        #expect(!recalls(verifier, "anna", "one") && !recalls(verifier, "berta", "two"))
        #expect(!verifies(verifier, "anna", "one"))
        #expect(verifies(verifier, "anna", "changed"))
    }

    @Test("a constantly used password is fully checked again after an hour")
    func lifetime() throws {
        let verifier = subject(try users([("anna", "one")]))
        #expect(verifies(verifier, "anna", "one"))
        // Entries stay for between half of the lifetime and all of it.
        for _ in 0..<29 {
            clock.advance(60_000)
            #expect(recalls(verifier, "anna", "one"))
        }
        for _ in 0..<31 {
            clock.advance(60_000)
            _ = recalls(verifier, "anna", "one")
        }
        #expect(!recalls(verifier, "anna", "one"))
    }

    @Test(
        "after a silence nothing is recalled that is older than an hour",
        arguments: [3_600_000, 5_400_000, 360_000_000] as [UInt64])
    func silence(milliseconds: UInt64) throws {
        let verifier = subject(try users([("anna", "one")]))
        #expect(verifies(verifier, "anna", "one"))
        clock.advance(milliseconds)
        #expect(!recalls(verifier, "anna", "one"))
    }

    @Test("a check that began with former users leaves nothing behind")
    func raceWithNewUsers() async throws {
        // The users change while "one" is being checked: the check takes about 20 ms, and the
        // change follows its begin. Whichever ends first, the old password is not recalled.
        var file = PasswordFile()
        try file.set(
            UserName("anna"), to: PasswordHash(hashing: SecretBytes(copying: Array("one".utf8))))
        let verifier = subject(PasswordVerifier(file))
        let begun = Clock()
        let others = try users([("anna", "changed")])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                begun.advance(1)
                _ = verifier.verify(userName: Array("anna".utf8), password: Array("one".utf8))
            }
            while begun.now.load(ordering: .relaxed) == 1_000 { await Task.yield() }
            verifier.use(others)
            try await group.waitForAll()
        }
        #expect(!recalls(verifier, "anna", "one"))
    }
}
