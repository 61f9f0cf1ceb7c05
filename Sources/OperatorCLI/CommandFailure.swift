import Authorization
import Credentials

/// What the exit code of `hermesctl` means; docs/hermesctl.md lists them for scripts.
package enum ExitStatus: CInt, Sendable, CaseIterable {
    case success = 0
    /// The broker, the password file or the token file has no such thing or refuses the request; the
    /// access rules deny it; or stored data is damaged.
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
    /// Whoever read the output stopped reading, as `head` does.
    case outputClosed = 141
}

/// Why a command ends without success: the exit code, and what standard error says.
package struct CommandFailure: Error, Equatable {
    package let status: ExitStatus
    /// One or more lines, ready for a terminal: untrusted parts are escaped. Empty says nothing.
    package let message: String

    package init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    init(_ error: TokenFileError) {
        self.init(.localFile, error.description)
    }

    init(_ error: PasswordFileError) {
        self.init(.localFile, error.description)
    }

    init(_ error: AccessRulesError) {
        self.init(.localFile, error.description)
    }
}
