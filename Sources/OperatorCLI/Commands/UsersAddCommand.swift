import ArgumentParser
import Credentials
import PlainText

struct UsersAddCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Add a user, or give an existing one a new password.",
        discussion: """
            The password is asked for twice on the terminal, or read from standard input with \
            --password-stdin. It is never an argument, which others on this machine could see.
            """)

    @Argument(
        help: ArgumentHelp("The user name: no : / + # in it.", valueName: "name"),
        transform: UserNameArgument.parse)
    var userName: UserName

    @Flag(help: "Read the password from standard input; one line end at its end does not count.")
    var passwordStdin = false

    @OptionGroup var file: PasswordFileOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
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
