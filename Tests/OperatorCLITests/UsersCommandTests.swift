import Credentials
import Glibc
import Testing

@testable import OperatorCLI

@Suite("users and config commands")
struct UsersCommandTests {
    private func verifies(_ path: String, _ name: String, _ password: String) throws -> Bool {
        PasswordVerifier(try PasswordFile.load(path: path))
            .verify(userName: Array(name.utf8), password: Array(password.utf8))
    }

    @Test("add, change, list and remove work on the file that is named")
    func lifecycle() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("users")
        let file = ["--password-file", path]

        let added = try await run(
            ["users", "add", "anna", "--password-stdin"] + file, input: "one\n")
        #expect(added.exitCode == 0)
        #expect(added.output == "Added \"anna\" to \(path).\n")
        #expect(try verifies(path, "anna", "one"))

        let changed = try await run(
            ["users", "add", "anna", "--password-stdin"] + file, input: "two\r\n")
        #expect(changed.output == "Changed the password of \"anna\" in \(path).\n")
        #expect(try verifies(path, "anna", "two"))
        #expect(try !verifies(path, "anna", "one"))

        let listed = try await run(["users", "list"] + file)
        #expect(listed.output == "USER  HASH\nanna  argon2id m=19456,t=2,p=1\n")
        let json = try await run(["users", "list", "--json"] + file)
        #expect(
            json.output
                == "{\"users\":[{\"hash\":\"argon2id m=19456,t=2,p=1\",\"name\":\"anna\"}]}\n")

        let unknown = try await run(["users", "remove", "berta"] + file)
        #expect(unknown.exitCode == 1)
        #expect(unknown.errors.hasPrefix("hermesctl: there is no user \"berta\" in \(path)."))

        let removed = try await run(["users", "remove", "anna"] + file)
        #expect(removed.exitCode == 0)
        #expect(removed.output == "Removed \"anna\" from \(path).\n")
        #expect(removed.errors.contains("no user is left"))
        #expect(try PasswordFile.load(path: path).entries.isEmpty)
    }

    @Test("the password file can come from the configuration or the environment")
    func fromConfiguration() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("users")
        let config = try folder.write("password_file: \(path)\n", to: "hermes.yaml")
        let added = try await run(
            ["users", "add", "anna", "--password-stdin", "--config", config], input: "one")
        #expect(added.exitCode == 0)
        let listed = try await run(
            ["users", "list"], environment: ["HERMES_PASSWORD_FILE": path])
        #expect(listed.output.contains("anna"))
    }

    @Test(
        "a password that cannot be is refused and nothing is written",
        arguments: ["", "\n", "\r\n", String(repeating: "x", count: 65_536)])
    func refusedPasswords(password: String) async throws {
        let folder = try TemporaryFolder()
        let run = try await run(
            ["users", "add", "anna", "--password-stdin", "--password-file", folder.file("users")],
            input: password)
        #expect(run.exitCode == 64)
        #expect(throws: PasswordFileError.missing(path: folder.file("users"))) {
            try PasswordFile.load(path: folder.file("users"))
        }
    }

    @Test("a malformed file is reported before a password is asked for, and stays as it is")
    func malformed() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("anna\n", to: "users")
        let run = try await run(["users", "add", "berta", "--password-file", path])
        #expect(run.exitCode == 2)
        #expect(run.errors.hasPrefix("hermesctl: \(path):1: there is no \":\""))
        #expect(try folder.read("users") == "anna\n")
    }

    @Test("without a terminal the way without one is named")
    func noTerminal() async throws {
        let folder = try TemporaryFolder()
        let run = try await run(["users", "add", "anna", "--password-file", folder.file("users")])
        #expect(run.exitCode == 64)
        #expect(run.errors.contains("--password-stdin"))
    }

    @Test("a file that others can read is warned about")
    func access() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("", to: "users")
        chmod(path, 0o644)
        let run = try await run(["users", "list", "--password-file", path])
        #expect(run.exitCode == 0)
        #expect(run.errors.hasPrefix("hermesctl: warning: the password file \"\(path)\" has mode"))
    }

    @Test("config check accepts a good file and its password file")
    func configGood() async throws {
        let folder = try TemporaryFolder()
        let config = try folder.write("limits:\n  max_in_flight: 10\n", to: "hermes.yaml")
        let run = try await run(["config", "check", config])
        #expect(run.exitCode == 0)
        #expect(run.output == "\(config): ok\n")
        #expect(run.errors.isEmpty)
    }

    @Test("config check shows all problems of the file, and those of its password file")
    func configBad() async throws {
        let folder = try TemporaryFolder()
        let bad = try folder.write("nonsense: 1\nlimits:\n  max_in_flight: 0\n", to: "hermes.yaml")
        let run1 = try await run(["config", "check", bad])
        #expect(run1.exitCode == 2)
        #expect(run1.errors.contains("\(bad):1: nonsense: "))
        #expect(run1.errors.contains("\(bad):3: limits.max_in_flight: "))

        let users = try folder.write("x\n", to: "users")
        let config = try folder.write("password_file: \(users)\n", to: "hermes.yaml")
        let run2 = try await run(["config", "check", config])
        #expect(run2.exitCode == 2)
        #expect(run2.errors.contains("\(users):1: "))
        #expect(run2.output.isEmpty)
    }
}
