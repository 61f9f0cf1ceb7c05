import ArgumentParser
import BrokerAPI
import Glibc
import OperatorConfiguration
import PlainText
import SystemFiles

/// Options that choose the broker and the token, shared by all commands that need a broker.
struct ConnectionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The broker's HTTP address (default: http://127.0.0.1:8080).", valueName: "url"))
    var url: String?

    @Option(
        help: ArgumentHelp(
            "The broker's Unix socket; needs no token.", valueName: "path"),
        completion: .file())
    var socket: String?

    @Option(
        help: ArgumentHelp(
            "PEM file of the authority that issued the broker's certificate, or of that certificate (default: whom this system trusts).",
            valueName: "file"),
        completion: .file())
    var caFile: String?

    @Option(
        help: ArgumentHelp(
            "PEM file of a certificate to show to the broker.", valueName: "file"),
        completion: .file())
    var clientCertificate: String?

    @Option(
        help: ArgumentHelp("PEM file of its private key.", valueName: "file"),
        completion: .file())
    var clientKey: String?

    @Option(
        help: ArgumentHelp(
            "File with the token (default: HERMES_ADMIN_TOKEN, then admin.token in the data directory).",
            valueName: "file"),
        completion: .file())
    var tokenFile: String?

    @Option(
        help: ArgumentHelp("The broker's data directory (default: data).", valueName: "folder"),
        completion: .directory)
    var dataDirectory: String?

    @Option(
        help: ArgumentHelp(
            "The broker's configuration, to take address and data directory from.",
            valueName: "file"),
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    @Option(help: ArgumentHelp("Seconds to wait for each answer.", valueName: "seconds"))
    var timeout: Int = 10

    func validate() throws {
        if url != nil && socket != nil {
            throw ValidationError("Give either --url or --socket: they name the same broker.")
        }
        if let url, AdminEndpoint(url: url) == nil {
            throw ValidationError(
                """
                --url \(VisibleText.escaped(url)) is no http or https address. Write it like \
                http://127.0.0.1:8080, without user name, query or fragment.
                """)
        }
        if let socket, socket.isEmpty || socket.utf8.count > 107 {
            throw ValidationError("--socket takes a path of 1 to 107 bytes.")
        }
        if (clientCertificate == nil) != (clientKey == nil) {
            throw ValidationError("Give --client-certificate and --client-key together.")
        }
        guard (1...3_600).contains(timeout) else {
            throw ValidationError("--timeout takes 1 to 3600 seconds.")
        }
    }
}

extension ConnectionOptions {
    /// Runs `body` with a client for the chosen broker, and closes its connections afterwards.
    ///
    /// `patience` is for requests that take longer than usual; `--timeout` can only raise it.
    func withClient(
        in context: CommandContext, patience: Duration = .zero,
        _ body: (AdminClient) async throws(CommandFailure) -> Void
    ) async throws(CommandFailure) {
        let endpoint = try endpoint(context.environment)
        let token = try token(for: endpoint, context.environment)
        if case .web(_, isPlainTextToOthers: true) = endpoint, token != nil {
            context.console.complain(
                """
                warning: the token goes to \(endpoint) without encryption. Use an https address, \
                or an SSH tunnel to the broker's machine.
                """)
        }
        let tls = try ClientTLS(
            caFile: caFile, certificate: clientCertificate, key: clientKey)
        let transport = context.makeTransport(endpoint, max(.seconds(timeout), patience), tls)
        do throws(CommandFailure) {
            try await body(AdminClient(endpoint: endpoint, token: token, transport: transport))
        } catch {
            await transport.close()
            throw error
        }
        await transport.close()
    }

    func endpoint(_ environment: [String: String]) throws(CommandFailure) -> AdminEndpoint {
        if let socket { return .unixSocket(path: socket) }
        // `validate` has refused a URL that cannot be read.
        if let url, let endpoint = AdminEndpoint(url: url) { return endpoint }
        if let path = Self.socketOfBroker(environment), tokenFile == nil {
            return .unixSocket(path: path)
        }
        let admin = try LocalConfiguration.load(config: config, environment).admin
        if config == nil || admin.port == 0, let found = try addressLeft(environment) {
            return found
        }
        guard admin.port != 0 else {
            throw CommandFailure(
                .usage,
                """
                the configuration lets the broker take a free HTTP port (admin.port is 0), and its \
                data directory has no \(AdminAddressPlace.fileName): it has not been started. Name \
                the address that its log says with --url.
                """)
        }
        return AdminEndpoint(
            listeningOn: admin.address, port: admin.port, isSecure: admin.tls.isOn)
    }

    /// The socket that the unit and the image give the broker by its variable, if it is there and
    /// this user may use it.
    private static func socketOfBroker(_ environment: [String: String]) -> String? {
        guard let path = environment["HERMES_ADMIN_UNIX_SOCKET"], !path.isEmpty,
            FileStatus(of: path)?.isSocket == true, access(path, R_OK | W_OK) == 0
        else { return nil }
        return path
    }

    /// The address that a broker has left in its data directory; `nil` without one. It counts only
    /// together with the token there: a token from elsewhere goes nowhere that a folder names.
    private func addressLeft(
        _ environment: [String: String]
    ) throws(CommandFailure) -> AdminEndpoint? {
        guard tokenFile == nil, environment[AdminTokenPlace.variable]?.isEmpty ?? true else {
            return nil
        }
        let path = "\(try dataDirectory(environment))/\(AdminAddressPlace.fileName)"
        guard
            let bytes = try? OpenFile(path, waits: true).readAll(
                maximumByteCount: AdminAddressPlace.mostBytes)
        else { return nil }
        let line = bytes.prefix { $0 != UInt8(ascii: "\n") }
        return AdminEndpoint(url: String(decoding: line, as: UTF8.self))
    }

    /// The token, from the most explicit place to the least; `nil` over a Unix socket, unless a
    /// place is named.
    func token(
        for endpoint: AdminEndpoint, _ environment: [String: String]
    ) throws(CommandFailure) -> String? {
        if let tokenFile { return try TokenText.read(path: tokenFile) }
        if case .unixSocket = endpoint { return nil }
        if let token = environment[AdminTokenPlace.variable], !token.isEmpty {
            return try TokenText.validated(token, from: "the variable \(AdminTokenPlace.variable)")
        }
        let folder = try dataDirectory(environment)
        return try TokenText.read(path: "\(folder)/\(AdminTokenPlace.fileName)")
    }

    /// The broker's data directory, if it is on this machine.
    func dataDirectory(_ environment: [String: String]) throws(CommandFailure) -> String {
        if let dataDirectory { return dataDirectory }
        return try LocalConfiguration.load(config: config, environment).dataDirectory
    }
}

/// The settings of the broker that `hermesctl` needs.
enum LocalConfiguration {
    /// Reads the file and the environment as the broker does. Without a file, only the variables
    /// that tell the broker's address count: flags may have changed the rest, and its
    /// contradictions are not reported here.
    static func load(
        config: String?, _ environment: [String: String]
    ) throws(CommandFailure) -> HermesConfiguration {
        try read(config: config, environment).configuration
    }

    /// As ``load(config:_:)``, with the layer that each value comes from.
    static func read(
        config: String?, _ environment: [String: String]
    ) throws(CommandFailure) -> (configuration: HermesConfiguration, origins: EffectiveSettings) {
        let loader =
            if let config {
                ConfigurationLoader(source: .file(config), environment: environment)
            } else {
                ConfigurationLoader(
                    environment: environment.filter { ownVariables.contains($0.key) })
            }
        do throws(ConfigurationError) {
            return try loader.read()
        } catch {
            throw CommandFailure(.localFile, error.description)
        }
    }

    private static let ownVariables: Set<String> = [
        "HERMES_ACL_FILE", "HERMES_ADMIN_ADDRESS", "HERMES_ADMIN_ALLOW_PLAIN", "HERMES_ADMIN_PORT",
        "HERMES_ADMIN_TLS_CERTIFICATE", "HERMES_ADMIN_TLS_KEY", "HERMES_ADMIN_TOKENS_FILE",
        "HERMES_DATA_DIRECTORY", "HERMES_PASSWORD_FILE",
    ]
}
