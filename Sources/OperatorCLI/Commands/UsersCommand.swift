import ArgumentParser
import Credentials
import PlainText

struct UsersCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "users", abstract: "Keep the users in the broker's password file.",
        discussion: """
            The file on this machine is changed, and a running broker takes it at the next CONNECT. \
            With --remote, --url or --socket the broker is asked to change its own.
            """,
        subcommands: [
            UsersAddCommand.self, UsersRemoveCommand.self, UsersListCommand.self,
            UsersImportCommand.self,
        ])
}

/// Options that choose the password file on this machine, or the broker that keeps it.
struct UserOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The password file.", valueName: "file"), completion: .file())
    var passwordFile: String?

    @Flag(
        help: """
            Ask the running broker, which changes its password file. --url and --socket do the same.
            """)
    var remote = false

    @OptionGroup var connection: ConnectionOptions

    func validate() throws {
        if passwordFile?.isEmpty == true { throw ValidationError("--password-file is empty.") }
        if passwordFile != nil, isRemote {
            throw ValidationError(
                "Give either --password-file, a file on this machine, or the broker to ask.")
        }
    }

    /// True when the broker is asked, and no file on this machine is used.
    var isRemote: Bool { remote || connection.url != nil || connection.socket != nil }

    func path(_ environment: [String: String]) throws(CommandFailure) -> String {
        if let passwordFile { return passwordFile }
        let config = connection.config
        if let path = try LocalConfiguration.load(config: config, environment).passwordFile {
            return path
        }
        let place = config.map { " in \"\(VisibleText.escaped($0))\"" } ?? ""
        throw CommandFailure(
            .usage,
            """
            no password file is named\(place). Give --password-file FILE, --config with a \
            configuration that sets password_file, or --remote to ask the running broker.
            """)
    }
}

/// Whether a change of a user also ends what it has open.
struct DisconnectOption: ParsableArguments {
    @Flag(help: "Close the user's connections too; needs --remote.")
    var disconnect = false

    func check(_ options: UserOptions) throws {
        if disconnect, !options.isRemote {
            throw ValidationError("--disconnect needs the running broker: add --remote.")
        }
    }
}

/// A user name given as an argument.
enum UserNameArgument {
    /// Throws the parser's error for a name that the file cannot hold.
    static func parse(_ text: String) throws -> UserName {
        do {
            return try UserName(text)
        } catch {
            throw ValidationError("\"\(VisibleText.escaped(text))\": \(error)")
        }
    }
}

/// Warns on standard error when others can read or change the file.
func warnOfAccess(_ file: PasswordFile, _ console: Console) {
    if let warning = file.accessWarning { console.complain("warning: \(warning)") }
}
