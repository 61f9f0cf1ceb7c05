import PushServices
import AdminTLS
import ArgumentParser
import Authorization
import BanFiles
import ConfiguredFiles
import Credentials
import Glibc
import LoginServices
import Logins
import OperatorConfiguration
import PlainText
import SystemFiles
import Webhook

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Check a configuration file; see and change that of the running broker.",
        subcommands: [
            ConfigCheckCommand.self, ConfigShowCommand.self, ConfigSetCommand.self,
            ConfigReloadCommand.self,
        ])
}

struct ConfigCheckCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check a configuration file, and the files it names.",
        discussion: """
            Password, ACL, token, TLS and webhook files, keys of logins and the file of bans are \
            read as the broker reads them. \
            Variables of the environment count as they do for the broker. All problems are shown \
            at once, each with its line and what to do.
            """)

    @Argument(
        help: ArgumentHelp("The configuration file.", valueName: "file"),
        completion: .file(extensions: ["yaml", "yml"]))
    var file: String

    func run(in context: CommandContext) async throws(CommandFailure) {
        let (configuration, origins) = try LocalConfiguration.read(
            config: file, context.environment)
        var refusals = FileRefusals()
        let showsItsFiles = checkDataFolder(configuration, &refusals, context.console)
        if let path = configuration.passwordFile {
            let passwords = refusals.collect(of: "password_file") { () throws(PasswordFileError) in
                try PasswordFile.load(path: path)
            }
            if let passwords { warn(of: passwords, path, context.console) }
        }
        if let path = configuration.aclFile {
            let rules = refusals.collect(of: "acl_file") { () throws(AccessRulesError) in
                try AccessRules.load(path: path)
            }
            if let rules { warn(of: rules, path, context.console) }
        }
        let tokens = refusals.collect(of: configuration.tokensSetting) {
            () throws(TokenFileError) -> TokenFile? in
            guard showsItsFiles || configuration.admin.tokensFile != nil else { return nil }
            do throws(TokenFileError) {
                return try TokenFile.load(path: configuration.tokensPath)
            } catch .missing {
                // As at a start, the file may be missing: `hermesctl tokens create` makes it.
                return nil
            }
        }
        if let warning = tokens??.accessWarning { context.console.complain("warning: \(warning)") }
        if showsItsFiles { checkBans(configuration, &refusals) }
        checkLogins(configuration.auth.jwt, &refusals)
        if let settings = LoginServiceSettings(configuration.auth.http) {
            _ = refusals.collect { () throws(LoginServiceFiles.Unusable) in
                try LoginServiceFiles.load(settings)
            }
        }
        _ = refusals.collect { () throws(SystemZones.Unknown) in
            try SystemZones.check(configuration)
        }
        for service in PushService.all(configuration) {
            _ = refusals.collect { () throws(UnusablePushFile) in try service.load() }
        }
        let webhooks = [
            WebhookSettings(configuration.webhook),
            WebhookSettings(configuration.wakes.webhook, section: "wakes.webhook"),
        ]
        for settings in webhooks.compactMap({ $0 }) {
            _ = refusals.collect { () throws(WebhookFiles.Unusable) in
                try WebhookFiles.load(settings)
            }
        }
        for door in configuration.openDoors { context.console.complain("warning: \(door)") }
        let tls = TLSFileCheck(configuration)
        for warning in tls.warnings { context.console.complain(warning) }
        let problems = refusals.problems + tls.problems
        guard problems.isEmpty else {
            throw CommandFailure(.localFile, origins.placed(problems.joined(separator: "\n")))
        }
        try context.console.print("\(VisibleText.escaped(file)): ok\n")
    }

    /// Reads the keys of tokens, and of a URL only what vouches for it.
    private func checkLogins(_ jwt: HermesConfiguration.JWT, _ refusals: inout FileRefusals) {
        if let file = KeyFile(jwt) {
            _ = refusals.collect { () throws(LoginFileUnusable) in
                do throws(KeyFile.Unusable) {
                    return try file.load()
                } catch {
                    throw LoginFileUnusable(
                        description: "\(file.setting): \(error.description)",
                        isTransient: error.isTransient)
                }
            }
        }
        guard let url = KeyURL(jwt) else { return }
        _ = refusals.collect { () throws(LoginFileUnusable) in
            do throws(PEMFile.Unusable) {
                try url.authorities()
            } catch {
                throw LoginFileUnusable(
                    description: "auth.jwt.ca_file: \(error.description)",
                    isTransient: error.isTransient)
            }
        }
    }

    /// A broker does not start with a damaged file of bans.
    private func checkBans(_ configuration: HermesConfiguration, _ refusals: inout FileRefusals) {
        _ = refusals.collect { () throws(BanFileError) -> BanFile? in
            do throws(BanFileError) {
                return try BanFile.load(path: "\(configuration.dataDirectory)/\(BanFile.name)")
            } catch .missing {
                // Nobody was ever banned.
                return nil
            }
        }
    }

    /// A file of the section `auth.jwt` cannot be used.
    private struct LoginFileUnusable: FileRefusal {
        let description: String
        let isTransient: Bool
    }

    /// Checks the data directory. The broker resolves a relative path, and its working directory
    /// may differ from this one. A problem with that folder is then only a warning.
    ///
    /// - Returns: False when the folder hides the files in it, which has then been reported.
    private func checkDataFolder(
        _ configuration: HermesConfiguration, _ refusals: inout FileRefusals, _ console: Console
    ) -> Bool {
        let path = configuration.dataDirectory
        let isAbsolute = path.hasPrefix("/")
        let folder = isAbsolute ? path : "\(workingDirectory())/\(path)"
        do throws(DataFolder.Unusable) {
            // The user of this command may differ from the broker's.
            try DataFolder.check(folder, owner: nil)
            return true
        } catch {
            if isAbsolute {
                _ = refusals.collect { () throws(DataFolder.Unusable) in throw error }
            } else {
                console.complain(
                    """
                    warning: data_directory: \(VisibleText.escaped(path)) begins at the broker's \
                    working directory. One that starts in yours would refuse the folder below; for \
                    another, set HERMES_DATA_DIRECTORY as it is set there.
                    warning: \(error.description)
                    """)
            }
        }
        return DataFolder.showsItsFiles(folder)
    }

    private func workingDirectory() -> String {
        guard let path = getcwd(nil, 0) else { return "." }
        defer { free(path) }
        return String(cString: path)
    }

    private func warn(of passwords: PasswordFile, _ path: String, _ console: Console) {
        warnOfAccess(passwords, console)
        guard passwords.entries.isEmpty else { return }
        console.complain(
            """
            warning: the password file "\(VisibleText.escaped(path))" holds no user: the broker \
            refuses everyone who logs in.
            """)
    }

    private func warn(of rules: AccessRules, _ path: String, _ console: Console) {
        if let warning = rules.accessWarning { console.complain("warning: \(warning)") }
        guard rules.rules.isEmpty else { return }
        console.complain(
            """
            warning: the ACL file "\(VisibleText.escaped(path))" holds no rule: the broker denies \
            every publish and subscription.
            """)
    }
}
