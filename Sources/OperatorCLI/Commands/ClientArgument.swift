import ArgumentParser

/// The argument that names a client.
struct ClientArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "The client identifier. Put -- before one that begins with a dash.",
            valueName: "client"),
        completion: .shellCommand("hermesctl clients list --names --limit 1000 2>/dev/null"))
    var clientID: String

    func validate() throws { try Self.check(clientID) }

    /// Throws the parser's error for an identifier that cannot stand in a URL.
    static func check(_ clientID: String) throws {
        // An empty path segment is another resource.
        if clientID.isEmpty { throw ValidationError("The client identifier is empty.") }
    }
}
