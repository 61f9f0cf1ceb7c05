import ArgumentParser
import PlainText
import Store
import SystemFiles

struct StoreRepairCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "repair",
        abstract: "Save what the undamaged pages of a database hold.",
        discussion: """
            For a data directory of this machine that no broker uses. Where pages of the database are \
            damaged, a new one gets the rows of all others; the damaged file stays in a folder beside \
            it. What is lost is printed, and told by /readyz and `hermesctl store check` until \
            `hermesctl store accept-loss`. Needs as much room as the database has.
            """)

    @Option(
        help: ArgumentHelp("The broker's data directory (default: data).", valueName: "folder"),
        completion: .directory)
    var dataDirectory: String?

    @Option(
        help: ArgumentHelp(
            "The broker's configuration, to take the data directory from.", valueName: "file"),
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    @OptionGroup var output: OutputOptions

    /// The result as JSON.
    private struct Repair: Encodable {
        struct Kept: Encodable {
            var table: String
            var rows: Int
        }

        var repaired: Bool
        /// The folder that has the damaged file.
        var folder: String?
        var kept: [Kept]
        var lost: [String]
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let directory =
            if let dataDirectory {
                dataDirectory
            } else {
                try LocalConfiguration.load(config: config, context.environment).dataDirectory
            }
        guard let lock = try DataDirectoryLock.take(directory) else {
            throw CommandFailure(
                .localFile,
                "\(VisibleText.quoted(directory)) is in use by a broker, or no data directory. Stop "
                    + "the broker first, or name its folder with --data-directory.")
        }
        let report = try lock.whileHeld { () throws(CommandFailure) in
            do throws(StoreFailure) {
                return try DatabaseRepair.run(in: directory)
            } catch {
                throw CommandFailure(.localFile, "\(error)")
            }
        }
        guard output.json else {
            try context.console.print(Self.rendered(report, directory))
            return
        }
        try context.console.print(
            JSONOutput.line(
                Repair(
                    repaired: report.folder != nil, folder: report.folder,
                    kept: report.kept.map { .init(table: $0.table, rows: $0.rows) },
                    lost: report.losses)))
    }

    private static func rendered(_ report: DatabaseRepair.Report, _ directory: String) -> String {
        guard let folder = report.folder else {
            return "\(VisibleText.escaped(directory)): no page is damaged, nothing was changed\n"
        }
        var text = ""
        for kept in report.kept { text += "kept: \(kept.rows) rows of \(kept.table)\n" }
        for line in report.losses { text += "lost: \(VisibleText.escaped(line))\n" }
        text += "The damaged file is in \(VisibleText.quoted(folder)).\n"
        text += "Once you have looked at it, run: hermesctl store accept-loss\n"
        return text
    }
}
