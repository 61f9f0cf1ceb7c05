import Credentials
import Glibc
import SystemFiles

/// Reads a password from a person or a script, never from the arguments, which every user of a
/// machine can see.
enum PasswordPrompt {
    /// Asks for the password twice on the terminal, without echo.
    static func ask(
        for userName: UserName, terminalPath: String
    ) throws(CommandFailure) -> SecretBytes {
        let terminal = try SilentTerminal(path: terminalPath)
        let first = try terminal.readLine(prompt: "Password for \(userName): ")
        try check(first)
        let second = try terminal.readLine(prompt: "The same password again: ")
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
            let (count, code) = retrying(mayBeClosed: true) { Glibc.read(descriptor, &byte, 1) }
            guard count >= 0 else {
                let error = SystemError(call: "read", subject: "standard input", code: code)
                throw CommandFailure(.localFile, error.complaint)
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

    static var tooLong: CommandFailure {
        CommandFailure(
            .usage,
            "the password is longer than the \(SecretBytes.maximumByteCount) bytes of MQTT.")
    }
}
