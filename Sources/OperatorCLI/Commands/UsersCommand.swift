import ArgumentParser
import Credentials
import PlainText

struct UsersCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "users", abstract: "Keep the users in the broker's password file.",
        subcommands: [
            UsersAddCommand.self, UsersRemoveCommand.self, UsersListCommand.self,
        ])
}

/// Options that choose the password file.
struct PasswordFileOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The password file.", valueName: "file"), completion: .file())
    var passwordFile: String?

    @Option(
        help: ArgumentHelp(
            "The broker's configuration, whose password_file is used.", valueName: "file"),
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    func validate() throws {
        if passwordFile?.isEmpty == true { throw ValidationError("--password-file is empty.") }
    }

    func path(_ environment: [String: String]) throws(CommandFailure) -> String {
        if let passwordFile { return passwordFile }
        if let path = try LocalConfiguration.load(config: config, environment).passwordFile {
            return path
        }
        let place = config.map { " in \"\(VisibleText.escaped($0))\"" } ?? ""
        throw CommandFailure(
            .usage,
            """
            no password file is named\(place). Give --password-file FILE, or --config with a \
            configuration that sets password_file.
            """)
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
