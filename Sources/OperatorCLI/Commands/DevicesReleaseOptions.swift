import ArgumentParser
import BrokerAPI
import PlainText

/// Which devices are sent to again.
struct DevicesReleaseOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("The client identifier.", valueName: "client"))
    var clientID: String?

    @OptionGroup var device: DeviceNameOption

    @Flag(help: "All devices, rather than that of one client.")
    var all = false

    @Option(help: ArgumentHelp("With --all: those of this app.", valueName: "bundle"))
    var bundle: String?

    @Flag(help: "With --all: those of Apple's sandbox.")
    var sandbox = false

    @Flag(help: "With --all: those that are not of Apple's sandbox.")
    var production = false

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard let clientID else {
            guard all else { throw ValidationError("Name a client, or give --all.") }
            if device.name != nil { throw ValidationError("--name is for one client's device.") }
            if sandbox, production {
                throw ValidationError("--sandbox and --production leave none; give neither.")
            }
            return
        }
        try ClientArgument.check(clientID)
        if all || bundle != nil || sandbox || production {
            throw ValidationError(
                "--all, --bundle, --sandbox and --production are for many devices, not for one.")
        }
    }

    /// Sends to them again, and prints how many needed it; `done` and `needless` are the words for one
    /// that did, and one that did not.
    func run(
        _ release: DeviceRelease, done: String, needless: String, in context: CommandContext
    ) async throws(CommandFailure) {
        // Very many devices are released in parts; each is stored before the next.
        try await connection.withClient(in: context, patience: .seconds(60)) {
            client throws(CommandFailure) in
            let answer: Answer<ReleasedDevices>
            if let clientID {
                answer = try await client.release(
                    release, of: clientID, named: device.name)
            } else {
                answer = try await client.releaseAll(
                    release, bundle: bundle,
                    environment: sandbox ? .sandbox : production ? .production : nil)
            }
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : text(answer.model.devices, done: done, needless: needless))
        }
    }

    func text(_ count: Int, done: String, needless: String) -> String {
        guard let clientID else { return "\(count) \(count == 1 ? "device" : "devices") \(done)\n" }
        return "\(VisibleText.escaped(clientID)): \(count > 0 ? done : needless)\n"
    }
}
