import ArgumentParser
import SystemFiles

/// Options that give the payload of a message.
struct PayloadOptions: ParsableArguments {
    /// The largest packet that any configuration allows, in bytes.
    private static let maximumBytes = 256 * 1024 * 1024

    @Option(
        name: .shortAndLong, parsing: .unconditional,
        help: ArgumentHelp("The message; it may be empty.", valueName: "text"))
    var message: String?

    @Option(
        name: .shortAndLong, help: ArgumentHelp("File that holds the message.", valueName: "path"),
        completion: .file())
    var file: String?

    var isGiven: Bool { message != nil || file != nil }

    func validate() throws {
        if message != nil && file != nil {
            throw ValidationError("Give either -m or -f: there is one message.")
        }
    }

    /// The message, the file, or else all of standard input.
    func read(in context: CommandContext) throws(CommandFailure) -> [UInt8] {
        if let message { return Array(message.utf8) }
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes =
                if let file {
                    try OpenFile(file, waits: true).readAll(maximumByteCount: Self.maximumBytes)
                } else {
                    try OpenFile.readAll(
                        context.standardInput, name: "standard input",
                        maximumByteCount: Self.maximumBytes)
                }
        } catch {
            throw CommandFailure(.localFile, error.complaint)
        }
        guard bytes.count <= Self.maximumBytes else {
            throw CommandFailure(
                .localFile,
                """
                the message has more than \(Self.maximumBytes) bytes, which no MQTT \
                broker takes. Check that it is the right file.
                """)
        }
        return bytes
    }
}
