import BrokerAPI
import ArgumentParser
import Glibc
import PlainText

struct BackupCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copy everything that a running broker stores into a folder.",
        discussion: """
            The broker itself writes the copy, so the folder is one of its machine; it is made, \
            or must be empty and closed to others. What was acknowledged before the command is in \
            it. A broker starts on it with --data-directory. Passwords, certificates and tokens are \
            files of their own, and not in it.
            """)

    /// A copy may take as long as its disk needs. This only ends the wait for a broker that hangs.
    private static let patience = Duration.seconds(24 * 3_600)

    @Argument(
        help: ArgumentHelp("The folder for the copy.", valueName: "folder"), completion: .directory)
    var directory: String

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if directory.isEmpty { throw ValidationError("The folder's name is empty.") }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let path = Self.absolute(directory)
        try await connection.withClient(in: context, patience: Self.patience) {
            client throws(CommandFailure) in
            // Only a person at a terminal wants to see the progress.
            let progress =
                context.console.outputColumns == nil || output.json
                ? nil : Task { await Self.showProgress(client, context.console) }
            let result: Result<Answer<BackupResult>, CommandFailure>
            do throws(CommandFailure) {
                result = .success(try await client.backUp(to: path))
            } catch {
                result = .failure(error)
            }
            progress?.cancel()
            await progress?.value
            let answer = try result.get()
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : "Copied to \"\(VisibleText.escaped(answer.model.directory))\".\n")
        }
    }

    /// Asks for the progress once a second, until the task is cancelled.
    private static func showProgress(_ client: AdminClient, _ console: Console) async {
        var shown: Int?
        while (try? await Task.sleep(for: .seconds(1))) != nil {
            guard let status = try? await client.status().model,
                let percent = status.store?.backupPercent, percent != shown
            else { continue }
            shown = percent
            console.show("\(percent) %\n")
        }
    }

    /// The broker has another working directory, so it gets the absolute path.
    private static func absolute(_ path: String) -> String {
        guard path.utf8.first != UInt8(ascii: "/"), let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return "\(String(cString: folder))/\(path)"
    }
}
