import ArgumentParser
import Authorization
import Credentials
import PlainText
import SystemFiles

struct AclSetCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Give the running broker other access rules, which hold at once.",
        discussion: """
            The file takes the place of the broker's ACL file, whole, unless a line of it is wrong. \
            To change what is there: hermesctl acl show > old; cp old new; edit new; hermesctl acl \
            set new --was old, which changes nothing if somebody else was faster.
            """)

    @Argument(
        help: ArgumentHelp("A file with the new rules.", valueName: "file"), completion: .file())
    var path: String

    @Option(
        help: ArgumentHelp(
            "A file with the rules that the broker must have now, as hermesctl acl show printed them.",
            valueName: "file"),
        completion: .file())
    var was: String?

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        let text = try Self.read(path)
        let tag = try was.map { (path) throws(CommandFailure) in
            "\"\(SHA256Digest(of: try Self.read(path)).hexadecimal)\""
        }
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.setAccessRules(text, ifMatch: tag)
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : "The broker has \(answer.model.rules) access rules now.\n")
        }
    }

    private static func read(_ path: String) throws(CommandFailure) -> [UInt8] {
        do throws(WholeFile.Failure) {
            return try WholeFile(path, maximumByteCount: AccessRules.maximumByteCount).bytes
        } catch {
            let (complaint, cure) = error.words(path, expected: "a file with access rules")
            throw CommandFailure(.localFile, "\(complaint). \(cure)")
        }
    }
}
