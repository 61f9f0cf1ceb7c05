import Credentials
import Glibc

/// Gets a password from people or scripts, never from arguments, which every user of a machine
/// can see.
enum PasswordPrompt {
    /// Asks twice on the terminal, without echo.
    static func ask(
        for userName: UserName, terminalPath: String
    ) throws(CommandFailure) -> SecretBytes {
        let descriptor = open(terminalPath, O_RDWR | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0, isatty(descriptor) == 1 else {
            if descriptor >= 0 { close(descriptor) }
            throw CommandFailure(
                .usage,
                """
                there is no terminal to ask for the password on. Give it on standard input with \
                --password-stdin.
                """)
        }
        defer { close(descriptor) }
        let first = try read("Password for \(userName): ", on: descriptor)
        try check(first)
        let second = try read("The same password again: ", on: descriptor)
        guard first.equals(second) else {
            throw CommandFailure(
                .refused, "the two passwords are not the same. Nothing was changed; try again.")
        }
        return first
    }

    /// Reads everything from a descriptor; one line end at the end does not count.
    static func read(from descriptor: CInt) throws(CommandFailure) -> SecretBytes {
        var secret = SecretBytes(capacity: SecretBytes.maximumByteCount + 2)
        var byte: UInt8 = 0
        while true {
            let count = Glibc.read(descriptor, &byte, 1)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else {
                let failure = SystemFailure(action: "read", path: "standard input", errno: errno)
                throw CommandFailure(.localFile, failure.description)
            }
            if count == 0 { break }
            guard !secret.isFull else { throw tooLong }
            secret.append(byte)
        }
        let endsLine = secret.withBytes { (last: $0.last, count: $0.count) }
        if endsLine.last == 0x0A {
            secret.removeLast()
            let isCarriageReturn = secret.withBytes { $0.last == 0x0D }
            if isCarriageReturn { secret.removeLast() }
        }
        try check(secret)
        return secret
    }

    private static func check(_ secret: borrowing SecretBytes) throws(CommandFailure) {
        if secret.isEmpty {
            throw CommandFailure(
                .usage, "the password is empty. Give it at least one character.")
        }
        if secret.count > SecretBytes.maximumByteCount { throw tooLong }
    }

    private static var tooLong: CommandFailure {
        CommandFailure(
            .usage,
            "the password is longer than the \(SecretBytes.maximumByteCount) bytes of MQTT.")
    }

    /// One line from the terminal, with echo, line editing and signals off meanwhile.
    private static func read(
        _ prompt: String, on descriptor: CInt
    ) throws(CommandFailure) -> SecretBytes {
        var saved = termios()
        guard tcgetattr(descriptor, &saved) == 0 else { throw terminalFailure() }
        var silent = saved
        silent.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON | ISIG | IEXTEN)
        // TCSAFLUSH throws away what was typed before the prompt, which would have been echoed.
        guard tcsetattr(descriptor, TCSAFLUSH, &silent) == 0 else { throw terminalFailure() }
        defer {
            tcsetattr(descriptor, TCSAFLUSH, &saved)
            show("\n", on: descriptor)
        }
        show(prompt, on: descriptor)
        var line = PasswordLine()
        while true {
            var byte: UInt8 = 0
            let count = Glibc.read(descriptor, &byte, 1)
            if count < 0 && errno == EINTR { continue }
            switch count == 1 ? line.receive(byte) : .ended {
            case .goOn: continue
            case .finished: return line.finish()
            case .ended:
                throw CommandFailure(.usage, "no password was typed. Nothing was changed.")
            case .interrupted: throw CommandFailure(.interrupted, "")
            case .tooLong: throw tooLong
            }
        }
    }

    private static func show(_ text: String, on descriptor: CInt) {
        // A prompt that cannot be shown is no reason to fail: the read that follows tells.
        let bytes = Array(text.utf8)
        _ = write(descriptor, bytes, bytes.count)
    }

    private static func terminalFailure() -> CommandFailure {
        let failure = SystemFailure(action: "use", path: "the terminal", errno: errno)
        return CommandFailure(.localFile, failure.description)
    }
}
