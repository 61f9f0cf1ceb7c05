import ArgumentParser

struct DevicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "See which phones notifications wake, and what became of that.",
        discussion: """
            Phones usually register themselves. Of a device's token, a secret of its user, only the \
            beginning is shown.
            """,
        subcommands: [
            DevicesStatusCommand.self, DevicesListCommand.self, DevicesShowCommand.self,
            DevicesTestCommand.self, DevicesResumeCommand.self, DevicesRetryCommand.self,
            DevicesRegisterCommand.self, DevicesForgetCommand.self,
        ])
}
