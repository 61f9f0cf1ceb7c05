import ArgumentParser
import Credentials
import PlainText

struct UsersAddCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Add a user, or give an existing one a new password.",
        discussion: """
            The password is asked for twice on the terminal, or read from standard input with \
            --password-stdin. It is never an argument, which others on this machine could see. A \
            broker that is asked (--remote) gets its hash, and not the password.
            """)

    @Argument(
        help: ArgumentHelp("The user name: no : / + # in it.", valueName: "name"),
        transform: UserNameArgument.parse)
    var userName: UserName

    @Flag(help: "Read the password from standard input; one line end at its end does not count.")
    var passwordStdin = false

    @OptionGroup var end: DisconnectOption
    @OptionGroup var file: UserOptions

    func validate() throws { try end.check(file) }

    func run(in context: CommandContext) async throws(CommandFailure) {
        if file.isRemote {
            try await askBroker(context)
        } else {
            try changeFile(context)
        }
    }

    private func askBroker(_ context: CommandContext) async throws(CommandFailure) {
        let hash = try hash(context)
        try await file.connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.setUser(
                userName, to: hash, disconnects: end.disconnect)
            let closed = end.disconnect ? Self.closed(answer.model.disconnected) : ""
            try context.console.print(
                answer.model.created
                    ? "Added \"\(userName)\".\n"
                    : "Changed the password of \"\(userName)\"\(closed).\n")
        }
    }

    /// What a change of a user says of the connections that it closed.
    static func closed(_ count: Int) -> String {
        ", and closed " + (count == 1 ? "1 connection" : "\(count) connections")
    }

    private func changeFile(_ context: CommandContext) throws(CommandFailure) {
        let path = try file.path(context.environment)
        try Self.checkBeforeAsking(path, context.console)
        let hash = try hash(context)
        let existed: Bool
        do throws(PasswordFileError) {
            existed = try PasswordFile.update(path: path, creating: true) { file in
                file.set(userName, to: hash)
            }
        } catch {
            throw CommandFailure(error)
        }
        let place = VisibleText.escaped(path)
        try context.console.print(
            existed
                ? "Changed the password of \"\(userName)\" in \(place).\n"
                : "Added \"\(userName)\" to \(place).\n")
    }

    /// A file that cannot be used is reported before the password is asked for.
    private static func checkBeforeAsking(
        _ path: String, _ console: Console
    ) throws(CommandFailure) {
        do throws(PasswordFileError) {
            warnOfAccess(try PasswordFile.load(path: path), console)
        } catch .missing {
            return
        } catch {
            throw CommandFailure(error)
        }
    }

    private func hash(_ context: CommandContext) throws(CommandFailure) -> PasswordHash {
        let password =
            if passwordStdin {
                try PasswordPrompt.read(from: context.standardInput)
            } else {
                try PasswordPrompt.ask(for: userName, terminalPath: context.terminalPath)
            }
        do throws(PasswordHashingError) {
            return try PasswordHash(hashing: password)
        } catch {
            throw CommandFailure(.localFile, error.description)
        }
    }
}
