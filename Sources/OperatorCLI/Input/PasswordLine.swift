import Credentials

/// A line typed without echo, one byte at a time.
///
/// The terminal's own line editing is off while a password is typed. So Ctrl-C reaches the program,
/// which can restore the terminal, and the usual editing keys are handled here.
struct PasswordLine: ~Copyable {
    enum OnByte: Equatable {
        case goOn
        /// Return, or Ctrl-D after something was typed.
        case finished
        /// Ctrl-D with nothing typed, or the terminal was closed.
        case ended
        /// Ctrl-C.
        case interrupted
        /// The line is longer than a password may be.
        case tooLong
    }

    private(set) var secret = SecretBytes()

    init() {}

    mutating func receive(_ byte: UInt8) -> OnByte {
        switch byte {
        case 0x0A, 0x0D:
            return .finished
        case 0x03:
            return .interrupted
        case 0x04:
            return secret.isEmpty ? .ended : .finished
        case 0x08, 0x7F:
            removeCharacter()
            return .goOn
        case 0x15:
            while secret.removeLast() != nil {}
            return .goOn
        default:
            guard !secret.isFull else { return .tooLong }
            secret.append(byte)
            return .goOn
        }
    }

    /// The typed bytes; ends the line.
    consuming func finish() -> SecretBytes { secret }

    /// Deletes the last character: the last byte that begins one, with all bytes that continue it
    /// (UTF-8).
    private mutating func removeCharacter() {
        while let byte = secret.removeLast() {
            if byte & 0xC0 != 0x80 { return }
        }
    }
}
