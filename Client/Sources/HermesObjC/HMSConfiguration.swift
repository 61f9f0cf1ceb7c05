#if canImport(ObjectiveC)
    import Foundation
    import HermesKit

    /// The broker's address for Objective-C; see `HermesClient.Server`.
    @objc(HMSServer)
    public final class HMSServer: NSObject, Sendable {
        let server: HermesClient.Server

        private init(_ server: HermesClient.Server) { self.server = server }

        /// A broker without TLS, for tests.
        @objc(plainHost:port:)
        public static func plain(host: String, port: Int) -> HMSServer {
            HMSServer(.plain(host, port: port))
        }

        /// A broker with TLS.
        ///
        /// - Parameters:
        ///   - host: a host name or an IP address.
        ///   - port: commonly 8883.
        ///   - pins: two at least, each `sha256/` and the Base64 of 32 bytes.
        ///   - roots: certificates in PEM, and no others; `nil` for those of the system.
        /// - Returns: The broker.
        /// - Throws: An error for a pin that is none.
        @objc(secureHost:port:pins:roots:error:)
        public static func secure(
            host: String, port: Int, pins: [String], roots: Data?
        ) throws -> HMSServer {
            HMSServer(
                .tls(
                    host, port: port, pins: try pins.map { try .init($0) },
                    roots: roots.map { .pem(Array($0)) } ?? .system))
        }

        /// The same server, reached by WebSocket.
        @objc(overWebSocketAtPath:headers:)
        public func overWebSocket(path: String, headers: [String: String]) -> HMSServer {
            HMSServer(server.overWebSocket(path: path, headers: headers))
        }
    }

    /// A user name and a password for Objective-C.
    @objc(HMSCredentials)
    public final class HMSCredentials: NSObject, Sendable {
        let pair: HermesClient.Credentials.Pair

        /// A password of text, or a token.
        @objc(initWithUserName:password:)
        public init(userName: String, password: String) {
            pair = .init(userName: userName, password: password)
        }
    }

    /// Called with what to log in with; `nil` if nobody is logged in any more, an error to be asked
    /// again.
    public typealias HMSCredentialsAnswer = @Sendable (HMSCredentials?, (any Error)?) -> Void

    /// All that a client needs to know, for Objective-C; see `HermesClient.Configuration`.
    @objc(HMSConfiguration)
    public final class HMSConfiguration: NSObject {
        /// The broker's addresses, one or more.
        @objc public var servers: [HMSServer]
        /// Names the client to the broker, for good.
        @objc public var clientID: String
        /// The file that survives a restart of the program; `nil` for none.
        @objc public var storagePath: String?
        /// Asked for credentials, on some thread; must call its argument once.
        @objc public var credentialsProvider: (@Sendable (@escaping HMSCredentialsAnswer) -> Void)?
        /// Seconds of silence before a sign of life is asked for; 0 to learn them for each network.
        @objc public var heartbeatSeconds: UInt16 = 120
        /// See `HermesClient.Configuration.keepsSession`.
        @objc public var keepsSession = true
        /// See `HermesClient.Configuration.sendsReports`.
        @objc public var sendsReports = true

        /// A configuration without credentials.
        @objc(initWithServers:clientID:storagePath:)
        public init(servers: [HMSServer], clientID: String, storagePath: String?) {
            self.servers = servers
            self.clientID = clientID
            self.storagePath = storagePath
        }

        var configuration: HermesClient.Configuration {
            var configuration = HermesClient.Configuration(
                servers.map(\.server), clientID: clientID, credentials: credentials,
                storage: storagePath.map { .file($0) } ?? .none)
            configuration.heartbeat =
                heartbeatSeconds == 0 ? .smart : .fixed(seconds: heartbeatSeconds)
            configuration.keepsSession = keepsSession
            configuration.sendsReports = sendsReports
            return configuration
        }

        private var credentials: HermesClient.Credentials {
            guard let credentialsProvider else { return .none }
            return .refreshed {
                try await withCheckedThrowingContinuation { continuation in
                    credentialsProvider { credentials, error in
                        if let error {
                            continuation.resume(throwing: error)
                        } else {
                            continuation.resume(returning: credentials?.pair)
                        }
                    }
                }
            }
        }
    }
#endif
