import ArgumentParser
import HermesKit

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

    @Option(help: "Certificate of the phone's own in PEM, for a broker that asks for one.")
    var certificate: String?

    @Option(help: "File with the certificate's key in PEM.")
    var key: String?

    @Option(
        help: "Certificate and key as PKCS #12; its password comes from HERMES_IDENTITY_PASSWORD.")
    var identity: String?

    @Option(help: "Use WebSocket, at this path of the broker, such as /mqtt.")
    var websocket: String?

    @Option(
        name: .customLong("header"),
        help: "A header of WebSocket's request, \"Name: value\"; may be repeated.")
    var headers: [String] = []

    @Option(
        help: "Go through this HTTP proxy, HOST:PORT; HERMES_PROXY_LOGIN has USER:PASSWORD for it.")
    var proxy: String?

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
                let (host, port) = try Self.hostAndPort(address, of: "--also")
                return try server(host, port)
            }
    }

    private func server(_ host: String, _ port: Int?) throws -> HermesClient.Server {
        var server: HermesClient.Server
        if pins.isEmpty, roots == nil {
            guard certificate == nil, key == nil, identity == nil else {
                throw ValidationError(
                    "--certificate, --key and --identity need TLS: name the broker's keys with "
                        + "--pin, and with --roots an authority of your own")
            }
            server = .plain(host, port: port ?? 1883)
        } else {
            var trusted = HermesClient.Roots.system
            if let roots { trusted = .pem(try Self.bytes(ofFile: roots)) }
            server = .tls(
                host, port: port ?? 8883, pins: try pins.map { try .init($0) }, roots: trusted,
                identity: try ownIdentity())
        }
        if let websocket {
            server = server.overWebSocket(path: websocket, headers: try namedHeaders())
        }
        if let proxy { server = server.through(try Self.proxy(proxy)) }
        return server
    }

    private func ownIdentity() throws -> HermesClient.ClientIdentity? {
        if let identity {
            return .pkcs12(
                try Self.bytes(ofFile: identity),
                password: Environment["HERMES_IDENTITY_PASSWORD"] ?? "")
        }
        guard let certificate, let key else {
            guard certificate == nil, key == nil else {
                throw ValidationError("--certificate and --key are needed together")
            }
            return nil
        }
        #if canImport(Network)
            throw ValidationError("on this system the certificate comes as --identity, PKCS #12")
        #else
            return .pem(
                certificates: try Self.bytes(ofFile: certificate),
                privateKey: try Self.bytes(ofFile: key))
        #endif
    }

    private func namedHeaders() throws -> [String: String] {
        try headers.reduce(into: [:]) { named, header in
            guard let colon = header.firstIndex(of: ":") else {
                throw ValidationError("--header \(header.visible): \"Name: value\" is needed")
            }
            let value = header[header.index(after: colon)...].drop { $0 == " " }
            named[String(header[..<colon])] = String(value)
        }
    }

    private static func proxy(_ address: String) throws -> HermesClient.Proxy {
        let (host, port) = try hostAndPort(address, of: "--proxy")
        guard let login = Environment["HERMES_PROXY_LOGIN"] else { return .http(host, port: port) }
        let parts = login.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return .http(
            host, port: port, userName: String(parts[0]),
            password: parts.count > 1 ? String(parts[1]) : "")
    }

    private static func hostAndPort(
        _ address: String, of option: String
    ) throws -> (host: String, port: Int) {
        guard let colon = address.lastIndex(of: ":"),
            let port = Int(address[address.index(after: colon)...])
        else { throw ValidationError("\(option) \(address.visible): HOST:PORT is needed") }
        return (String(address[..<colon]), port)
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
