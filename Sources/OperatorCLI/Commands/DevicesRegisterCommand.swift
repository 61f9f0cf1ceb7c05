import ArgumentParser
import BrokerAPI

struct DevicesRegisterCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "register",
        abstract: "Register a device of a client, in place of an earlier one of its name.")

    @OptionGroup var target: ClientArgument
    @OptionGroup var device: DeviceNameOption

    @Option(
        help: ArgumentHelp(
            "The device token: for Apple in hexadecimal digits.", valueName: "token"))
    var token: String

    @Option(help: ArgumentHelp("The app, such as com.example.app.", valueName: "bundle"))
    var bundle: String?

    @Flag(help: "The token is of Apple's sandbox: Xcode installed the app.")
    var sandbox = false

    @Flag(help: "The token is of Firebase Cloud Messaging: an Android app.")
    var fcm = false

    @Flag(help: "The device is woken by wakes.webhook.")
    var webhook = false

    @Option(help: ArgumentHelp("Wake it for sessions of this user only.", valueName: "user"))
    var user: String?

    @Option(
        help: ArgumentHelp("The user's time zone, such as Europe/Berlin.", valueName: "zone"))
    var timeZone: String?

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if token.isEmpty { throw ValidationError("The token is empty.") }
        if !webhook, bundle == nil {
            throw ValidationError("Give --bundle, the app's identifier, or --webhook.")
        }
        if webhook, fcm { throw ValidationError("Give --webhook or --fcm, not both.") }
        if webhook || fcm, sandbox {
            throw ValidationError("--sandbox is Apple's, --\(webhook ? "webhook" : "fcm") is not.")
        }
    }

    private var kind: Device.Kind { webhook ? .webhook : fcm ? .fcm : .apns }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let order = DeviceOrder(
            name: device.name, kind: kind.name, token: token,
            bundle: bundle, environment: sandbox ? Device.Environment.sandbox.name : nil,
            userName: user, timeZone: timeZone)
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.register(order, of: target.clientID)
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : DevicesShowCommand.rendered(answer.model, now: context.now()))
        }
    }
}
