import ArgumentParser
import HermesClient

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The broker, and how the phone stands to it.
struct ConnectionOptions: ParsableArguments {
    @Option(help: "Host name or IP address of the broker.")
    var host = "127.0.0.1"

    @Option(
        name: .customLong("also"),
        help: "Another address of the broker, HOST:PORT; may be repeated.")
    var others: [String] = []

    @Option(help: "Port; 1883, or 8883 with pins.")
    var port: Int?

    @Option(
        name: .customLong("pin"),
        help: "Use TLS, and trust this public key: sha256/ and Base64. Two are needed.")
    var pins: [String] = []

    @Option(help: "File of root certificates in PEM, in place of the system's.")
    var roots: String?

    @Option(help: "Client identifier.")
    var clientID = "hermes-phone"

    @Option(help: "User name; the password comes from the environment, HERMES_PASSWORD.")
    var user: String?

    @Option(help: "File that keeps the session across restarts; without it nothing is kept.")
    var storage: String?

    @Option(help: "Seconds of silence before a PINGREQ, 10 to 3600, or \"smart\".")
    var heartbeat = "120"

    @Flag(help: "Publish no report of what was counted.")
    var noReports = false

    func configuration() throws -> HermesClient.Configuration {
        var configuration = HermesClient.Configuration(
            try servers(), clientID: clientID,
            credentials: user.map {
                .fixed(userName: $0, password: Environment["HERMES_PASSWORD"] ?? "")
            } ?? .none,
            storage: storage.map { .file($0) } ?? .none)
        configuration.sendsReports = !noReports
        if heartbeat == "smart" {
            configuration.heartbeat = .smart
        } else if let seconds = UInt16(heartbeat) {
            configuration.heartbeat = .fixed(seconds: seconds)
        } else {
            throw ValidationError(
                "--heartbeat \(heartbeat.visible): seconds or \"smart\" is needed")
        }
        return configuration
    }

    private func servers() throws -> [HermesClient.Server] {
        try [server(host, port)]
            + others.map { address in
                guard let colon = address.lastIndex(of: ":"),
                    let port = Int(address[address.index(after: colon)...])
                else { throw ValidationError("--also \(address.visible): HOST:PORT is needed") }
                return try server(String(address[..<colon]), port)
            }
    }

    private func server(_ host: String, _ port: Int?) throws -> HermesClient.Server {
        guard !pins.isEmpty || roots != nil else { return .plain(host, port: port ?? 1883) }
        var trusted = HermesClient.Roots.system
        if let roots { trusted = .pem(try Self.bytes(ofFile: roots)) }
        return .tls(
            host, port: port ?? 8883, pins: try pins.map { try .init($0) }, roots: trusted)
    }

    private static func bytes(ofFile path: String) throws -> [UInt8] {
        guard let file = fopen(path, "rb") else {
            throw ValidationError(
                "cannot read \(path.visible): \(String(cString: strerror(errno)))")
        }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&bytes, 1, bytes.count, file)
        return Array(bytes.prefix(count))
    }
}

/// The variables of the program's environment.
enum Environment {
    static subscript(name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
