import ArgumentParser
import Authorization
import Credentials
import OperatorConfiguration

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Check the broker's configuration.",
        subcommands: [ConfigCheckCommand.self])
}

struct ConfigCheckCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check a configuration file, and the files it names.",
        discussion: """
            Password, ACL, token and TLS files are read as the broker reads them. Variables of the \
            environment count as they do for the broker. All problems are shown at once, each \
            with its line and what to do.
            """)

    @Argument(
        help: ArgumentHelp("The configuration file.", valueName: "file"),
        completion: .file(extensions: ["yaml", "yml"]))
    var file: String

    func run(in context: CommandContext) async throws(CommandFailure) {
        let configuration = try BrokerSettings.load(config: file, context.environment)
        if let path = configuration.passwordFile {
            do throws(PasswordFileError) {
                let passwords = try PasswordFile.load(path: path)
                warnOfAccess(passwords, context.console)
                if passwords.entries.isEmpty {
                    context.console.complain(
                        """
                        warning: the password file "\(VisibleText.escaped(path))" holds no user: \
                        the broker refuses everyone who logs in.
                        """)
                }
            } catch {
                throw CommandFailure(error)
            }
        }
        if let path = configuration.aclFile {
            let rules = try loadRules(path, context.console)
            if rules.rules.isEmpty {
                context.console.complain(
                    """
                    warning: the ACL file "\(VisibleText.escaped(path))" holds no rule: the broker \
                    denies every publish and subscription.
                    """)
            }
        }
        if let path = configuration.admin.tokensFile {
            do throws(TokenFileError) {
                let tokens = try TokenFile.load(path: path)
                if let warning = tokens.accessWarning {
                    context.console.complain("warning: \(warning)")
                }
            } catch .missing {
                // As at a start: `hermesctl tokens create` makes it.
            } catch {
                throw CommandFailure(error)
            }
        }
        let tls = TLSFileCheck(configuration)
        for warning in tls.warnings { context.console.complain(warning) }
        guard tls.problems.isEmpty else {
            throw CommandFailure(.localFile, tls.problems.joined(separator: "\n"))
        }
        try context.console.print("\(VisibleText.escaped(file)): ok\n")
    }
}
