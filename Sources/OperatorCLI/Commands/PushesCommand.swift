import ArgumentParser

struct PushesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pushes", abstract: "List, show or cancel pushes.",
        subcommands: [
            PushesListCommand.self, PushesShowCommand.self, PushesCancelCommand.self,
        ])
}

/// The argument that names a push.
struct PushArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp("The push's identifier, as hermesctl push printed.", valueName: "id"))
    var pushID: String

    func validate() throws {
        if pushID.isEmpty { throw ValidationError("The identifier is empty.") }
    }
}
