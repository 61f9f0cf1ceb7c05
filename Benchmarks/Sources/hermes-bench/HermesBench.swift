import ArgumentParser

@main
struct HermesBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hermes-bench",
        abstract: "Loads an MQTT broker on this machine and measures what it costs.",
        discussion: """
            The broker may be any: name its port, and its process number to have its CPU time and \
            memory measured. Every scenario stops by itself.
            """,
        subcommands: [
            Pairs.self, FanOut.self, FanIn.self, OpenLoop.self, Offline.self, Idle.self,
            Connect.self,
        ])
}
