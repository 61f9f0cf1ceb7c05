import ArgumentParser
import PlainText
import Store

struct StoreCheckCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Look for damage in a data directory of this machine.",
        discussion: """
            Reads the whole database and changes nothing; a running broker is not disturbed. What \
            lies only in the journal is checked by the next start of the broker. Exit code 1 \
            says that something is damaged.
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
    private struct Findings: Encodable {
        /// Files that were set aside, and losses that starts of the broker recorded.
        var lost: [String]
        var database: [String]
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let directory =
            if let dataDirectory {
                dataDirectory
            } else {
                try LocalConfiguration.load(config: config, context.environment).dataDirectory
            }
        let findings = try Self.findings(in: directory)
        if output.json {
            try context.console.print(JSONOutput.line(findings))
        } else {
            try context.console.print(Self.rendered(findings, directory))
        }
        guard findings.database.isEmpty, findings.lost.isEmpty else {
            throw CommandFailure(.refused, "")
        }
    }

    private static func findings(in directory: String) throws(CommandFailure) -> Findings {
        do throws(StoreFailure) {
            let damage = try StoredDamage(in: directory)
            var findings = Findings(
                lost: damage.setAsideFiles + damage.records, database: [])
            do throws(StoreFailure) {
                findings.database = try DatabaseCheck(directory: directory).run()
            } catch {
                // The database may be too damaged to continue, which this command has to report.
                guard error.kind == .damaged else { throw error }
                // Its usual advice is this command.
                findings.database = [
                    "cannot \(error.operation) \(VisibleText.quoted(error.path)): \(error.reason). "
                        + "Start on a backup, stop the broker and run hermesctl store repair, or "
                        + "accept the loss after a start that was refused."
                ]
            }
            return findings
        } catch {
            throw CommandFailure(.localFile, "\(error)")
        }
    }

    private static func rendered(_ findings: Findings, _ directory: String) -> String {
        var text = ""
        for line in findings.database { text += "database: \(VisibleText.escaped(line))\n" }
        for line in findings.lost {
            text += "lost: \(VisibleText.printable(line))\n"
        }
        if text.isEmpty { return "\(VisibleText.escaped(directory)): ok\n" }
        if !findings.lost.isEmpty {
            text += "Once you have looked at it, run: hermesctl store accept-loss\n"
        }
        return text
    }
}
