import SystemFiles

/// The meaning of the exit codes of `hermesctl`; docs/hermesctl.md lists them for scripts.
package enum ExitStatus: CInt, Sendable, CaseIterable {
    case success = 0
    /// The broker refuses the request, or does not know the client; the password or token file has
    /// no such entry; the access rules deny the action; or stored data is damaged.
    case refused = 1
    /// A file on this machine is missing, malformed or cannot be read or written.
    case localFile = 2
    /// No connection to the broker, or no answer in time.
    case unreachable = 3
    /// The token is missing, wrong or not allowed to do this.
    case unauthorized = 4
    /// Something answered that this program does not understand.
    case unexpectedAnswer = 5
    /// The arguments are wrong.
    case usage = 64
    /// Ctrl-C at the password prompt.
    case interrupted = 130
    /// The reader of the output has closed it, as `head` does.
    case outputClosed = 141
}

/// A command ends without success: the exit code, and the text for standard error.
package struct CommandFailure: Error, Equatable {
    package let status: ExitStatus
    /// One or more lines, ready for a terminal: untrusted parts are escaped. Empty prints nothing.
    package let message: String

    package init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    /// A file of the configuration cannot be used.
    init(_ refusal: some FileRefusal) {
        self.init(.localFile, refusal.description)
    }
}
