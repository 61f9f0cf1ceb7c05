import ArgumentParser
import BrokerAPI
import Credentials

struct UsersListCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the users, in the order of the file.")

    @Option(help: ArgumentHelp("How many to show at most (default: all).", valueName: "count"))
    var limit: Int?

    @OptionGroup var file: UserOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit is at least 1.") }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        guard file.isRemote else {
            try show(try listed(context), context)
            return
        }
        try await file.connection.withClient(in: context) { client throws(CommandFailure) in
            try show(try await client.users(limit: limit ?? .max), context)
        }
    }

    private func listed(_ context: CommandContext) throws(CommandFailure) -> UserPage {
        let path = try file.path(context.environment)
        let loaded: PasswordFile
        do throws(PasswordFileError) {
            loaded = try PasswordFile.load(path: path)
        } catch {
            throw CommandFailure(error)
        }
        warnOfAccess(loaded, context.console)
        let entries = loaded.entries
        let users = entries.prefix(limit ?? .max).map { entry in
            UserSummary(name: entry.userName.text, hash: "argon2id \(entry.hash.parameters)")
        }
        return UserPage(
            users: users, next: users.count < entries.count ? "\(users.count)" : nil)
    }

    private func show(_ page: UserPage, _ context: CommandContext) throws(CommandFailure) {
        try context.console.print(
            output.json
                ? JSONOutput.line(page)
                : Self.rendered(page.users, width: context.console.outputColumns))
        if !output.json, page.next != nil {
            context.console.complain(
                "there are more than these \(page.users.count). Raise --limit.")
        }
    }

    static func rendered(_ users: [UserSummary], width: Int?) -> String {
        var table = Table([.init(title: "USER", isFlexible: true), .init(title: "HASH")])
        for user in users { table.append([user.name, user.hash]) }
        return table.rendered(width: width)
    }
}
