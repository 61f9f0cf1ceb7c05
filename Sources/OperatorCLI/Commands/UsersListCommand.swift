import ArgumentParser
import Credentials

struct UsersListCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the users, in the order of the file.")

    @OptionGroup var file: PasswordFileOptions
    @OptionGroup var output: OutputOptions

    /// The output of `--json`.
    struct UserList: Encodable {
        struct User: Encodable {
            let name: String
            let hash: String
        }

        let users: [User]
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let path = try file.path(context.environment)
        let loaded: PasswordFile
        do throws(PasswordFileError) {
            loaded = try PasswordFile.load(path: path)
        } catch {
            throw CommandFailure(error)
        }
        warnOfAccess(loaded, context.console)
        let users = loaded.entries.map { entry in
            UserList.User(name: entry.userName.text, hash: "argon2id \(entry.hash.parameters)")
        }
        try context.console.print(
            output.json
                ? JSONOutput.line(UserList(users: users))
                : Self.rendered(users, width: context.console.outputColumns))
    }

    static func rendered(_ users: [UserList.User], width: Int?) -> String {
        var table = Table([.init(title: "USER", isFlexible: true), .init(title: "HASH")])
        for user in users { table.append([user.name, user.hash]) }
        return table.rendered(width: width)
    }
}
