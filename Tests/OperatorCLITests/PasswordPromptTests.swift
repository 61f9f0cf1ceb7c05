import Credentials
import Dispatch
import Glibc
import Synchronization
import Testing

@testable import OperatorCLI

@Suite("Password prompt")
struct PasswordPromptTests {
    @Test(
        "keys that people expect edit the line",
        arguments: [
            ("secret\r", "secret"), ("ab\u{7F}c\n", "ac"), ("ab\u{8}\u{8}\u{8}c\n", "c"),
            ("aü\u{7F}b\n", "ab"), ("日本\u{7F}\n", "日"), ("wrong\u{15}right\n", "right"),
            ("ab\u{4}", "ab"), ("a\u{0}\t\n", "a\u{0}\t"),
        ])
    func editing(typed: String, expected: String) {
        var line = PasswordLine()
        var last = PasswordLine.OnByte.goOn
        for byte in typed.utf8 {
            #expect(last == .goOn)
            last = line.receive(byte)
        }
        #expect(last == .finished)
        let bytes = line.finish().withBytes { Array($0) }
        #expect(bytes == Array(expected.utf8))
    }

    @Test("Ctrl-C, Ctrl-D on an empty line, and a line without end stop")
    func stops() {
        var line = PasswordLine()
        #expect(line.receive(0x04) == .ended)
        #expect(line.receive(0x03) == .interrupted)
        for _ in 0..<SecretBytes.maximumByteCount { _ = line.receive(0x61) }
        #expect(line.receive(0x61) == .tooLong)
    }

    @Test("asks twice on a terminal, shows nothing of it, and puts the terminal back in order")
    func asks() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("users")
        let terminal = try PseudoTerminal()
        terminal.type([("Password for anna: ", "secrex\u{7F}t\r"), ("again: ", "secret\r")])
        let run = try await run(
            ["users", "add", "anna", "--password-file", path], terminalPath: terminal.path)
        #expect(run.exitCode == 0)
        #expect(terminal.shown == "Password for anna: \r\nThe same password again: ")
        #expect(terminal.echoes)
        let verifier = PasswordVerifier(try PasswordFile.load(path: path))
        #expect(verifier.verify(userName: Array("anna".utf8), password: Array("secret".utf8)))
    }

    @Test("two different passwords change nothing")
    func different() async throws {
        let folder = try TemporaryFolder()
        let terminal = try PseudoTerminal()
        terminal.type([("Password for anna: ", "one\r"), ("again: ", "two\r")])
        let run = try await run(
            ["users", "add", "anna", "--password-file", folder.file("users")],
            terminalPath: terminal.path)
        #expect(run.exitCode == 1)
        #expect(run.errors.contains("not the same"))
        #expect(access(folder.file("users"), F_OK) != 0)
        #expect(terminal.echoes)
    }

    @Test("Ctrl-C ends with 130 and leaves the terminal as it was")
    func interrupt() async throws {
        let folder = try TemporaryFolder()
        let terminal = try PseudoTerminal()
        terminal.type([("Password for anna: ", "one\u{3}")])
        let run = try await run(
            ["users", "add", "anna", "--password-file", folder.file("users")],
            terminalPath: terminal.path)
        #expect(run.exitCode == 130)
        #expect(run.errors.isEmpty)
        #expect(terminal.echoes)
    }
}

/// A pseudo terminal with the test at keyboard and screen.
private final class PseudoTerminal: Sendable {
    let path: String
    private let keyboard: CInt
    // Kept open, so that the terminal stays when the program closes it.
    private let screen: CInt
    private let seen = Mutex("")

    init() throws {
        keyboard = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        try #require(keyboard >= 0)
        // unlockpt and ptsname, which Swift does not import: TIOCSPTLCK, TIOCGPTN.
        var locked: CInt = 0
        try #require(ioctl(keyboard, 0x4004_5431, &locked) == 0)
        var number: CUnsignedInt = 0
        try #require(ioctl(keyboard, 0x8004_5430, &number) == 0)
        path = "/dev/pts/\(number)"
        screen = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
        try #require(screen >= 0)
    }

    deinit {
        close(screen)
        close(keyboard)
    }

    /// The output before the last answer was typed.
    var shown: String { seen.withLock { $0 } }

    /// True when typed characters are shown.
    var echoes: Bool {
        var attributes = termios()
        return tcgetattr(screen, &attributes) == 0 && attributes.c_lflag & tcflag_t(ECHO) != 0
    }

    /// Types each answer after its prompt, on a thread of its own, because the program blocks the
    /// test's. Sends Ctrl-C if a prompt does not appear.
    func type(_ dialogue: [(prompt: String, answer: String)]) {
        DispatchQueue(label: "typist").async { [self] in
            for (prompt, answer) in dialogue {
                let answer = waitFor(prompt) ? answer : "\u{3}"
                let bytes = Array(answer.utf8)
                _ = write(keyboard, bytes, bytes.count)
            }
        }
    }

    /// True once the screen shows the text at its end; false after 20 seconds without output.
    private func waitFor(_ text: String) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        while !shown.hasSuffix(text) {
            var ready = pollfd(fd: keyboard, events: Int16(POLLIN), revents: 0)
            guard poll(&ready, 1, 20_000) == 1 else { return false }
            let count = read(keyboard, &bytes, bytes.count)
            guard count > 0 else { return false }
            seen.withLock { $0 += String(decoding: bytes[..<count], as: UTF8.self) }
        }
        return true
    }
}
