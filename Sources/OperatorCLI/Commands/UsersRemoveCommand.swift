import ArgumentParser
import Credentials
import PlainText

struct UsersRemoveCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove a user.")

    @Argument(
        help: ArgumentHelp("The user name.", valueName: "name"), transform: UserNameArgument.parse)
    var userName: UserName

    @OptionGroup var end: DisconnectOption
    @OptionGroup var file: UserOptions

    func validate() throws { try end.check(file) }

    func run(in context: CommandContext) async throws(CommandFailure) {
        guard file.isRemote else {
            try changeFile(context)
            return
        }
        try await file.connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.removeUser(userName, disconnects: end.disconnect)
            let closed =
                end.disconnect ? UsersAddCommand.closed(answer.model.disconnected) : ""
            try context.console.print("Removed \"\(userName)\"\(closed).\n")
        }
    }

    private func changeFile(_ context: CommandContext) throws(CommandFailure) {
        let path = try file.path(context.environment)
        let place = VisibleText.escaped(path)
        let removed: (wasThere: Bool, left: Int)
        do throws(PasswordFileError) {
            removed = try PasswordFile.update(path: path, creating: false) { file in
                (file.remove(userName), file.entries.count)
            }
        } catch {
            throw CommandFailure(error)
        }
        guard removed.wasThere else {
            throw CommandFailure(
                .refused,
                """
                there is no user "\(userName)" in \(place). \
                See who there is: hermesctl users list --password-file '\(place)'
                """)
        }
        try context.console.print("Removed \"\(userName)\" from \(place).\n")
        if removed.left == 0 {
            context.console.complain(
                "warning: no user is left: with this file the broker refuses everyone who logs in.")
        }
    }
}
