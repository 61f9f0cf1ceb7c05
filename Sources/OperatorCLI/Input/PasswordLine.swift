import Credentials

/// A line typed without echo, one byte at a time.
///
/// The terminal's own line editing is off while a password is typed, so that Ctrl-C reaches us
/// and the terminal can be put back in order; the keys that people expect are handled here.
struct PasswordLine: ~Copyable {
    enum OnByte: Equatable {
        case goOn
        /// Return, or Ctrl-D after something was typed.
        case finished
        /// Ctrl-D with nothing typed, or the terminal is gone.
        case ended
        /// Ctrl-C.
        case interrupted
        /// More than a password may have.
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

    /// What was typed; ends the line.
    consuming func finish() -> SecretBytes { secret }

    /// The last character is the last byte that begins one, with all that continue it (UTF-8).
    private mutating func removeCharacter() {
        while let byte = secret.removeLast() {
            if byte & 0xC0 != 0x80 { return }
        }
    }
}
