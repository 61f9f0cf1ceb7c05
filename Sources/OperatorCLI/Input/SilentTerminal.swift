import Credentials
import Glibc
import SystemFiles

/// A terminal that does not show what is typed; it is restored when the value ends.
///
/// Echo, the terminal's line editing and its signals are off meanwhile. Ctrl-C arrives as a byte,
/// so that the terminal gets its echo back on every way out.
struct SilentTerminal: ~Copyable {
    private let descriptor: CInt
    private let saved: termios

    /// Throws ``ExitStatus/usage`` when there is no terminal at `path`.
    init(path: String) throws(CommandFailure) {
        let descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY)
        var saved = termios()
        // Only a terminal has these attributes.
        guard descriptor >= 0, tcgetattr(descriptor, &saved) == 0 else {
            if descriptor >= 0 { close(descriptor) }
            throw CommandFailure(
                .usage,
                """
                there is no terminal to ask for the password on. Give it on standard input with \
                --password-stdin.
                """)
        }
        var silent = saved
        silent.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON | ISIG | IEXTEN)
        // Input from before the prompt is dropped: it was not meant as a password.
        guard tcsetattr(descriptor, TCSAFLUSH, &silent) == 0 else {
            let error = SystemError(call: "silence", subject: path, code: errno)
            close(descriptor)
            throw CommandFailure(.localFile, error.complaint)
        }
        self.descriptor = descriptor
        self.saved = saved
    }

    deinit {
        var saved = saved
        // The rest of a password must not reach the shell.
        tcsetattr(descriptor, TCSAFLUSH, &saved)
        close(descriptor)
    }

    /// Shows a prompt and reads one line, without its line end.
    borrowing func readLine(prompt: String) throws(CommandFailure) -> SecretBytes {
        show(prompt)
        defer { show("\n") }
        var line = PasswordLine()
        while true {
            var byte: UInt8 = 0
            let (count, _) = retrying { read(descriptor, &byte, 1) }
            switch count == 1 ? line.receive(byte) : .ended {
            case .goOn: continue
            case .finished: return line.finish()
            case .ended:
                throw CommandFailure(.usage, "no password was typed. Nothing was changed.")
            case .interrupted: throw CommandFailure(.interrupted, "")
            case .tooLong: throw PasswordPrompt.tooLong
            }
        }
    }

    /// A prompt that cannot be shown is ignored: the read that follows reports the failure.
    private borrowing func show(_ text: String) {
        let bytes = Array(text.utf8)
        _ = write(descriptor, bytes, bytes.count)
    }
}
