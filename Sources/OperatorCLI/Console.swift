import Glibc
import SystemFiles

/// Standard output and standard error as values, so that a test can read them.
package struct Console: Sendable {
    /// Writes to standard output; throws when its reader has closed it or the disk is full.
    private let writeOutput: @Sendable ([UInt8]) throws(CommandFailure) -> Void
    private let writeError: @Sendable (String) -> Void
    /// Columns of the terminal that shows standard output; `nil` when it is no terminal, in which
    /// case nothing is cut.
    package let outputColumns: Int?

    package init(
        outputColumns: Int?,
        writeOutput: @escaping @Sendable ([UInt8]) throws(CommandFailure) -> Void,
        writeError: @escaping @Sendable (String) -> Void
    ) {
        self.outputColumns = outputColumns
        self.writeOutput = writeOutput
        self.writeError = writeError
    }

    /// The process's own standard output and error.
    package static func standard() -> Console {
        Console(
            outputColumns: terminalColumns(STDOUT_FILENO),
            writeOutput: { bytes throws(CommandFailure) in
                do throws(SystemError) {
                    try OpenFile.writeAll(bytes, to: STDOUT_FILENO, name: "standard output")
                } catch {
                    if error.code == EPIPE { throw CommandFailure(.outputClosed, "") }
                    throw CommandFailure(
                        .localFile,
                        """
                        cannot write the output: \(SystemError.words(for: error.code)). \
                        Check where standard output goes.
                        """)
                }
            },
            // If standard error cannot be written, there is nobody left to tell.
            writeError: {
                try? OpenFile.writeAll(
                    Array($0.utf8), to: STDERR_FILENO, name: "standard error")
            })
    }

    /// Writes bytes unchanged.
    func print(bytes: [UInt8]) throws(CommandFailure) {
        try writeOutput(bytes)
    }

    /// Writes text unchanged; the caller has escaped untrusted parts.
    func print(_ text: String) throws(CommandFailure) {
        try writeOutput(Array(text.utf8))
    }

    /// One message on standard error, under the program's name.
    package func complain(_ message: String) {
        for line in message.split(separator: "\n") { writeError("hermesctl: \(line)\n") }
    }

    /// Text on standard error without the program's name: a prompt, or a usage message.
    package func show(_ text: String) {
        writeError(text)
    }

    /// The terminal's width; `nil` when the descriptor is no terminal. A terminal that does not
    /// know its width counts as 80 columns.
    private static func terminalColumns(_ descriptor: CInt) -> Int? {
        guard isatty(descriptor) == 1 else { return nil }
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
