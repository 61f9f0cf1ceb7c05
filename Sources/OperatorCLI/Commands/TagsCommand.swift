import ArgumentParser

struct TagsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tags", abstract: "Show and change the tags of clients.",
        discussion: """
            Pushes choose clients by their tags. Tags belong to the client identifier: it may be \
            tagged before its first connection, and keeps its tags when its session ends.
            """,
        subcommands: [
            TagsListCommand.self, TagsClientsCommand.self, TagsShowCommand.self,
            TagsAddCommand.self, TagsRemoveCommand.self,
        ])
}
