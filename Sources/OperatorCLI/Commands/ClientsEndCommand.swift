import ArgumentParser
import BrokerAPI
import PlainText

struct ClientsEndCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "end",
        abstract: "End a client's session, or all of a user, with all that waits for it.")

    @Argument(
        help: ArgumentHelp(
            "The client identifier. Put -- before one that begins with a dash.",
            valueName: "client"))
    var clientID: String?

    @Option(help: ArgumentHelp("End all sessions of this user.", valueName: "user"))
    var user: String?

    @Flag(help: "End them; without this, only how many they are is shown.")
    var yes = false

    @OptionGroup var connection: ConnectionOptions

    func validate() throws {
        guard (clientID == nil) != (user == nil) else {
            throw ValidationError("Give either a client identifier or --user.")
        }
        if let clientID { try ClientArgument.check(clientID) }
        if user?.isEmpty == true { throw ValidationError("The user name is empty.") }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let sessions = try await sessions(client)
            guard yes else {
                let waiting = sessions.reduce(0) { $0 + $1.queued + $1.inFlight }
                throw CommandFailure(
                    .refused,
                    """
                    nothing was ended: \(sessions.count) sessions with \(waiting) messages, which \
                    nobody could bring back. Run it again with --yes.
                    """)
            }
            for session in sessions {
                try await client.remove(["v1", "clients", session.clientID, "session"])
                try context.console.print(
                    "Ended the session of \"\(VisibleText.escaped(session.clientID))\".\n")
            }
        }
    }

    private func sessions(
        _ client: AdminClient
    ) async throws(CommandFailure) -> [ClientSummary] {
        if let clientID { return [try await client.client(clientID).model.summary] }
        var query = ClientQuery()
        query.userName = user
        query.limit = .max
        let page = try await client.clients(query)
        guard !page.clients.isEmpty else {
            throw CommandFailure(
                .refused, "the user \"\((user ?? "").visible())\" has no session.")
        }
        return page.clients
    }
}
