import Glibc
import Testing

@testable import AdminAPI

@Suite("Admin token")
struct AdminTokenTests {
    @Test("a first start makes a token that later starts find")
    func createAndRead() throws {
        try withTemporaryDirectory { directory in
            let file = AdminTokenFile(dataDirectory: directory)
            let (token, origin) = try file.loadOrCreate(environmentValue: nil)
            #expect(origin == .created)
            let text = try #require(try contents(file.path))
            #expect(text.count == 44)
            #expect(text.hasSuffix("\n"))
            #expect(token.matches(text.dropLast().utf8))
            var status = stat()
            #expect(stat(file.path, &status) == 0)
            #expect(status.st_mode & 0o7777 == 0o600)
            #expect(access(file.path + ".new", F_OK) != 0)

            let again = try file.loadOrCreate(environmentValue: nil)
            #expect(again.origin == .read)
            #expect(again.token.matches(text.dropLast().utf8))
        }
    }

    @Test("a check before the start creates nothing, and reports the errors of a start")
    func load() throws {
        try withTemporaryDirectory { directory in
            let file = AdminTokenFile(dataDirectory: directory)
            #expect(try file.load(environmentValue: nil)?.origin == nil)
            #expect(access(file.path, F_OK) != 0)
            let elsewhere = AdminTokenFile(dataDirectory: "/nonexistent")
            #expect(try elsewhere.load(environmentValue: nil)?.origin == nil)
            let short = #expect(throws: AdminTokenError.self) {
                try file.load(environmentValue: "short")
            }
            #expect(short?.isTransient == false)
            _ = try file.loadOrCreate(environmentValue: nil)
            #expect(try file.load(environmentValue: nil)?.origin == .read)
            chmod(file.path, 0o644)
            #expect(throws: AdminTokenError.self) { try file.load(environmentValue: nil) }
        }
    }

    @Test("two directories get different tokens")
    func random() throws {
        try withTemporaryDirectory { first in
            try withTemporaryDirectory { second in
                let file = AdminTokenFile(dataDirectory: first)
                _ = try file.loadOrCreate(environmentValue: nil)
                let other = try AdminTokenFile(dataDirectory: second)
                    .loadOrCreate(environmentValue: nil)
                let text = try #require(try contents(file.path))
                #expect(!other.token.matches(text.dropLast().utf8))
            }
        }
    }

    @Test("the environment takes precedence, and leaves the directory alone")
    func environment() throws {
        try withTemporaryDirectory { directory in
            let file = AdminTokenFile(dataDirectory: directory)
            let value = "from-the-environment-1"
            let (token, origin) = try file.loadOrCreate(environmentValue: value)
            #expect(origin == .environment)
            #expect(token.matches(value.utf8))
            #expect(access(file.path, F_OK) != 0)
        }
    }

    @Test(
        "an empty or weak value is refused, and not shown",
        arguments: [
            "", "short", "fifteen-charact", "aaaaaaaaaaaaaaaaaaaaaaaa",
            "with a space in between it",
            "tab\there-and-there-again", "ünïcödé-ünïcödé-ünïcödé",
            String(repeating: "abcdefgh", count: 65),
        ])
    func weakEnvironment(value: String) throws {
        let file = AdminTokenFile(dataDirectory: "/nonexistent")
        let error = #expect(throws: AdminTokenError.self) {
            try file.loadOrCreate(environmentValue: value)
        }
        let text = try #require(error?.description)
        #expect(text.contains("HERMES_ADMIN_TOKEN"))
        if !value.isEmpty { #expect(!text.contains(value)) }
    }

    @Test("an empty file is refused, by name")
    func emptyFile() throws {
        try withTemporaryDirectory { directory in
            let file = AdminTokenFile(dataDirectory: directory)
            try write("", to: file.path, mode: 0o600)
            let error = #expect(throws: AdminTokenError.self) {
                try file.loadOrCreate(environmentValue: nil)
            }
            #expect(error?.description.contains(file.path) == true)
            #expect(error?.description.contains("empty") == true)
        }
    }

    @Test("a file that others may use is refused with its cure", arguments: [0o640, 0o604, 0o620])
    func looseMode(mode: mode_t) throws {
        try withTemporaryDirectory { directory in
            let file = AdminTokenFile(dataDirectory: directory)
            try write("abcdefghijklmnopqrstuvwxyz\n", to: file.path, mode: mode)
            let error = #expect(throws: AdminTokenError.self) {
                try file.loadOrCreate(environmentValue: nil)
            }
            #expect(error?.description.contains("chmod 600 \(file.path)") == true)
        }
    }

    @Test("a link, a directory and a missing data directory are refused")
    func noFile() throws {
        try withTemporaryDirectory { directory in
            let file = AdminTokenFile(dataDirectory: directory)
            #expect(symlink("/etc/hostname", file.path) == 0)
            #expect(throws: AdminTokenError.self) { try file.loadOrCreate(environmentValue: nil) }
            unlink(file.path)
            #expect(mkdir(file.path, 0o700) == 0)
            #expect(throws: AdminTokenError.self) { try file.loadOrCreate(environmentValue: nil) }
        }
        #expect(throws: AdminTokenError.self) {
            try AdminTokenFile(dataDirectory: "/nonexistent").loadOrCreate(environmentValue: nil)
        }
    }

    @Test("leftovers of a crash do not matter")
    func staleDraft() throws {
        try withTemporaryDirectory { directory in
            let file = AdminTokenFile(dataDirectory: directory)
            try write("half", to: file.path + ".new", mode: 0o600)
            #expect(try file.loadOrCreate(environmentValue: nil).origin == .created)
        }
    }

    @Test("only the whole token matches")
    func matching() throws {
        let token = try AdminToken("abcdefghijklmnop", source: "test")
        #expect(token.matches("abcdefghijklmnop".utf8))
        for wrong in [
            "", "a", "abcdefghijklmno", "abcdefghijklmnopa", "abcdefghijklmnoq", "Abcdefghijklmnop",
            "abcdefghijklmnopabcdefghijklmnop",
        ] {
            #expect(!token.matches(wrong.utf8), "\(wrong)")
        }
        #expect(!"\(token)".contains("abc"))
    }
}

private func write(_ text: String, to path: String, mode: mode_t) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, mode)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    #expect(fchmod(descriptor, mode) == 0)
    #expect(Glibc.write(descriptor, text, text.utf8.count) == text.utf8.count)
}

private func contents(_ path: String) throws -> String? {
    let descriptor = open(path, O_RDONLY)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 1000)
    let count = read(descriptor, &bytes, bytes.count)
    return String(validating: bytes.prefix(max(count, 0)), as: UTF8.self)
}
