/// The words of the HTTP API in a problem's cure, as the commands of `hermesctl` that do the same.
enum CommandWords {
    private static let commands: [(request: String, command: String)] = [
        ("GET /v1/subscriptions?client_id=...", "hermesctl subscriptions --client CLIENT"),
        ("GET /v1/clients", "hermesctl clients list"),
        ("GET /v1/tokens", "hermesctl tokens list"),
        ("GET /v1/pushes", "hermesctl pushes list"),
        ("GET /v1/scheduled", "hermesctl scheduled list"),
        ("GET /v1/retained", "hermesctl retained list"),
        ("GET /v1/bans", "hermesctl bans list"),
        ("GET /v1/users", "hermesctl users list"),
        ("GET /v1/drain", "hermesctl drain status"),
        ("GET /v1/config", "hermesctl config show"),
        ("GET /v1/openapi.json lists the routes.", "Does hermesctl have the broker's version?"),
        ("DELETE /v1/tokens/", "hermesctl tokens revoke "),
        ("DELETE /v1/scheduled/{id}", "hermesctl scheduled cancel ID"),
        ("POST /v1/pushes", "hermesctl push"),
    ]

    static func translated(_ text: String) -> String {
        commands.reduce(text) { $0.replacing($1.request, with: $1.command) }
    }
}
