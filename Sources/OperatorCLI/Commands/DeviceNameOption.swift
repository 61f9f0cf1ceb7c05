import ArgumentParser
import BrokerAPI

/// The option that names one of several devices of a client.
struct DeviceNameOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The name that tells the device from others of the client; most have none.",
            valueName: "name"))
    var name: String?

    func validate() throws {
        guard Device.isName((name ?? "").utf8) else {
            throw ValidationError(
                "A device's name has at most \(Device.mostNameBytes) letters, digits, dots, dashes and "
                    + "underscores.")
        }
    }
}
