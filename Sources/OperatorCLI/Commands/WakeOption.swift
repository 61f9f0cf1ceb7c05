import ArgumentParser
import BrokerAPI

/// The option that says whether a message wakes phones.
struct WakeOption: ParsableArguments {
    @Option(
        name: .customLong("wake"),
        help: ArgumentHelp(
            """
            Whether it wakes phones: alert, background or none (default: as wakes.rules say).
            """, valueName: "kind"))
    var kind: String?

    func validate() throws {
        let words = WakeRequest.named.map(\.name)
        guard kind.map({ words.contains($0) }) ?? true else {
            throw ValidationError("--wake takes \(words.joined(separator: ", ")).")
        }
    }
}
