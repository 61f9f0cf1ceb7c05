import ArgumentParser
import Authorization
import OperatorConfiguration
import PlainText

struct AclCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "acl", abstract: "Ask and change the broker's access rules.",
        subcommands: [AclCheckCommand.self, AclShowCommand.self, AclSetCommand.self])
}

/// Options that choose the ACL file.
struct AclFileOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The ACL file.", valueName: "file"), completion: .file())
    var file: String?

    @Option(
        help: ArgumentHelp(
            "The broker's configuration, whose acl_file is used.", valueName: "file"),
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    func validate() throws {
        if file?.isEmpty == true { throw ValidationError("--file is empty.") }
    }

    func path(_ environment: [String: String]) throws(CommandFailure) -> String {
        if let file { return file }
        let configuration = try LocalConfiguration.load(config: config, environment)
        if let path = configuration.aclFile { return path }
        let place = config.map { " in \"\(VisibleText.escaped($0))\"" } ?? ""
        throw CommandFailure(
            .usage,
            """
            no ACL file is named\(place), and a broker without one allows everything. Give \
            --file FILE, or --config with a configuration that sets acl_file.
            """)
    }
}

/// Reads an ACL file, and warns on standard error when others can change it.
func loadRules(_ path: String, _ console: Console) throws(CommandFailure) -> AccessRules {
    do throws(AccessRulesError) {
        let rules = try AccessRules.load(path: path)
        if let warning = rules.accessWarning { console.complain("warning: \(warning)") }
        return rules
    } catch {
        throw CommandFailure(error)
    }
}
