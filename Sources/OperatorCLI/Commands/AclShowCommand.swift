import ArgumentParser
import PlainText

struct AclShowCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Print the running broker's access rules as they are.")

    @OptionGroup var connection: ConnectionOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let text = try await client.accessRules()
            guard context.console.outputColumns != nil else {
                // Byte for byte, for a file that hermesctl acl set takes back.
                try context.console.print(bytes: text)
                return
            }
            for line in String(decoding: text, as: UTF8.self).split(
                separator: "\n", omittingEmptySubsequences: false
            ).dropLast(text.last == 0x0A ? 1 : 0) {
                try context.console.print(VisibleText.printable(String(line)) + "\n")
            }
        }
    }
}
