/// Everything an operator can set, validated: a value of this type needs no further checks.
public struct HermesConfiguration: Sendable, Equatable {
    /// MQTT listeners; at least one.
    public var listeners: [Listener] = [Listener()]
    public var admin = Admin()
    /// Folder that belongs to one running broker; made with mode 0700 when it is missing.
    public var dataDirectory = "data"
    public var durability = Durability.sync
    /// New messages wait while the file system of the data directory has fewer free bytes.
    public var diskReserveBytes = 64 * 1024 * 1024
    /// Argon2id password file; `nil` when no users are configured.
    public var passwordFile: String?
    /// Access rules; `nil` allows every client everything.
    public var aclFile: String?
    /// How often `$SYS/broker/...` is published; zero turns these topics off.
    public var sysInterval: Duration = .seconds(10)
    public var limits = Limits()
    public var logging = Logging()
    public var orders = Orders()

    public init() {}

    public struct Listener: Sendable, Equatable {
        /// Numeric IPv4 or IPv6 address, or `localhost`.
        public var address = "127.0.0.1"
        /// 0 takes a free port, which the log names.
        public var port: UInt16 = 1883
        /// `nil` allows anonymous clients on a loopback address only.
        public var allowAnonymous: Bool?
        /// Addresses and networks, such as 10.0.0.0/8, whose connections begin with a PROXY header.
        public var proxyFrom: [String] = []
        /// Serves plain TCP as long as it names no certificate.
        public var tls = TLS()

        public init() {}
    }

    public struct TLS: Sendable, Equatable {
        /// PEM files with a certificate and those that vouch for it; empty for plain TCP.
        public var certificates: [String] = []
        /// PEM files with their private keys, in the same order.
        public var keys: [String] = []
        public var minimumVersion = Version.tls12
        public var clientCertificates = ClientCertificates.off
        /// PEM file with those who may issue clients' certificates.
        public var clientCAFile: String?
        /// PEM file with lists of revoked certificates.
        public var crlFile: String?
        /// The common name of a client's certificate is its user name.
        public var userNameFromCertificate = false

        public enum Version: String, Sendable, Equatable, CaseIterable {
            case tls12 = "1.2"
            case tls13 = "1.3"
        }

        public enum ClientCertificates: String, Sendable, Equatable, CaseIterable {
            case off, optional, required
        }

        public init() {}

        public var isOn: Bool { !certificates.isEmpty }

        /// Whether every client proves by its certificate which user it is.
        public var identifiesEveryClient: Bool {
            isOn && clientCertificates == .required && userNameFromCertificate
        }
    }

    public struct Admin: Sendable, Equatable {
        public var address = "127.0.0.1"
        public var port: UInt16 = 8080
        /// Path of a Unix socket whose file mode (0600) is the guard; no token is needed there.
        public var unixSocket: String?
        /// Tokens with scopes; `nil` for the file `tokens` in the data directory.
        public var tokensFile: String?
        /// Unknown tokens of one address in a minute, above which it is told to wait; 1 or more.
        public var maxFailures = 30
        public var tls = TLS()
        /// Whether plain HTTP may be spoken on an address that others reach.
        public var allowPlain = false

        public struct TLS: Sendable, Equatable {
            /// PEM file with the certificate and those that vouch for it; `nil` for plain HTTP.
            public var certificate: String?
            /// PEM file with its private key; there whenever the certificate is.
            public var key: String?
            public var minimumVersion = HermesConfiguration.TLS.Version.tls12
            /// PEM file with those who may issue the certificates that callers must show; `nil`
            /// asks for none.
            public var clientCAFile: String?

            public init() {}

            /// The certificate has its key: the configuration has been checked.
            public var isOn: Bool { certificate != nil }
        }

        public init() {}

        /// Whether only this machine can reach the address: `localhost`, 127.0.0.0/8 or `::1`.
        public var isLoopback: Bool { NetworkAddress(address)?.isLoopback ?? false }
    }

    /// When a message counts as stored.
    public enum Durability: Sendable, Equatable {
        /// Once it is on the disk.
        case sync
        /// Once it is written; the disk has it within this time, 1 ms to 60 s.
        case interval(Duration)
        /// In memory only: a restart loses sessions, queues and retained messages.
        case none
    }

    public struct Limits: Sendable, Equatable {
        /// From accept to a complete CONNECT.
        public var connectTimeout: Duration = .seconds(10)
        /// Binds clients that ask for a longer keep alive, or for none; `nil` leaves them alone.
        public var maxKeepAlive: Duration?
        /// Bytes of the first packet, before CONNECT is accepted.
        public var maxConnectPacketBytes = 330 * 1024
        /// Bytes of a whole packet; at most 256 MiB.
        public var maxPacketBytes = 1024 * 1024
        public var maxTopicLevels = 128
        /// Subscriptions of one session; a filter counts once for every eight of its levels.
        public var maxSubscriptions = 100_000
        /// Outgoing QoS 1 and 2 messages without their final acknowledgement, per client; 1 to 65,535.
        public var maxInFlight = 20
        /// Inbound QoS 2 identifiers without their PUBREL, per session.
        public var maxInboundQoS2 = 1_000
        /// PUBLISH, SUBSCRIBE and UNSUBSCRIBE packets of one client that await our acknowledgement: above
        /// it we stop reading.
        public var maxUnacknowledgedPublishes = 1_000
        public var maxUnacknowledgedPublishBytes = 4 * 1024 * 1024
        /// Messages, and their bytes, that wait in one session.
        public var queueMessages = 1_000
        public var queueBytes = 8 * 1024 * 1024
        public var queuePolicy = QueuePolicy.dropOldest
        public var maxSessions = 1_000_000
        /// Retained messages, and their bytes; a topic counts once for every eight of its levels.
        public var maxRetained = 1_000_000
        public var retainedBytes = 256 * 1024 * 1024
        /// From disconnection to removal of a persistent session.
        public var sessionExpiry: Duration = .seconds(14 * 86_400)
        /// `nil` takes what the descriptor limit leaves after a reserve.
        public var maxConnections: Int?
        /// Connections of one address at a time.
        public var connectionsPerAddress = AddressLimit.auto
        /// Connections accepted in a second; `nil` accepts as fast as they come.
        public var connectRate: Int? = 10_000
        /// Of one address in a second.
        public var connectRatePerAddress = AddressLimit.auto
        /// TLS handshakes at a time.
        public var maxHandshakes = 1_000
        /// Of one address at a time.
        public var handshakesPerAddress = AddressLimit.auto
        /// Private memory of the process, above which connections are given up.
        public var memory = MemoryLimit.auto
        /// Unfinished packets of all connections together.
        public var unfinishedBytes = 128 * 1024 * 1024
        /// Unsent bytes of one connection above which QoS 0 is dropped and QoS 1 and 2 wait.
        public var outputBytes = 1024 * 1024
        /// How long a stop waits for unsent output.
        public var drainTimeout: Duration = .seconds(5)

        public init() {}
    }

    /// What one peer address may have of something: an IPv4 address, or the /64 network of an IPv6 one.
    public enum AddressLimit: Sendable, Equatable {
        /// Half of what all together may have; without a limit on a loopback address.
        case auto
        case off
        case number(Int)
    }

    /// How much memory the process may use.
    public enum MemoryLimit: Sendable, Equatable {
        /// 80 % of what its control group or the machine has.
        case auto
        case off
        case bytes(Int)
    }

    public enum QueuePolicy: String, Sendable, Equatable, CaseIterable {
        case dropOldest = "drop_oldest"
        case dropNewest = "drop_newest"
    }

    public struct Logging: Sendable, Equatable {
        public var level = Level.info
        public var format = Format.text

        public enum Level: String, Sendable, Equatable, CaseIterable {
            case trace, debug, info, notice, warning, error, critical
        }

        public enum Format: String, Sendable, Equatable, CaseIterable {
            case text, json
        }

        public init() {}
    }

    public struct Orders: Sendable, Equatable {
        /// Holds `{salesId}` and `{orderId}`, each a whole topic level.
        public var topicTemplate = "orders/{salesId}/{orderId}/status"
        /// Names the sequence that the update counts in; holds `{salesId}`.
        public var channelTemplate = "orders/{salesId}"
        /// QoS of published updates: 0, 1 or 2.
        public var qos: UInt8 = 1

        public init() {}
    }
}
