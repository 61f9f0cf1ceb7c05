import BrokerAPI

/// Everything an operator can set, validated: a value of this type needs no further checks.
package struct HermesConfiguration: Sendable, Equatable {
    /// MQTT listeners; at least one.
    package var listeners: [Listener] = [Listener()]
    package var admin = Admin()
    /// Folder that belongs to one running broker; made with mode 0700 when it is missing.
    package var dataDirectory = "data"
    package var durability = Durability.sync
    /// New messages wait while the file system of the data directory has fewer free bytes.
    package var diskReserveBytes = 64 * 1024 * 1024
    /// Argon2id password file; `nil` when no users are configured.
    package var passwordFile: String?
    /// Access rules; `nil` allows every client everything.
    package var aclFile: String?
    /// How often `$SYS/broker/...` is published; zero turns these topics off.
    package var sysInterval: Duration = .seconds(10)
    package var limits = BrokerLimits()
    package var logging = Logging()
    package var orders = Orders()

    package init() {}

    package struct Listener: Sendable, Equatable {
        /// Numeric IPv4 or IPv6 address, or `localhost`.
        package var address = "127.0.0.1"
        /// 0 takes a free port, which the log names.
        package var port: UInt16 = 1883
        /// `nil` allows anonymous clients on a loopback address only.
        package var allowAnonymous: Bool?
        /// Addresses and networks, such as 10.0.0.0/8, whose connections begin with a PROXY header.
        package var proxyFrom: [String] = []
        /// Serves plain TCP as long as it names no certificate.
        package var tls = TLS()

        package init() {}
    }

    package struct TLS: Sendable, Equatable {
        /// PEM files with a certificate and those that vouch for it; empty for plain TCP.
        package var certificates: [String] = []
        /// PEM files with their private keys, in the same order.
        package var keys: [String] = []
        package var minimumVersion = Version.tls12
        package var clientCertificates = ClientCertificates.off
        /// PEM file with those who may issue clients' certificates.
        package var clientCAFile: String?
        /// PEM file with lists of revoked certificates.
        package var crlFile: String?
        /// The common name of a client's certificate is its user name.
        package var userNameFromCertificate = false

        package enum Version: String, Sendable, Equatable, CaseIterable {
            case tls12 = "1.2"
            case tls13 = "1.3"
        }

        package enum ClientCertificates: String, Sendable, Equatable, CaseIterable {
            case off, optional, required
        }

        package init() {}

        package var isOn: Bool { !certificates.isEmpty }

        /// Whether every client proves by its certificate which user it is.
        package var identifiesEveryClient: Bool {
            isOn && clientCertificates == .required && userNameFromCertificate
        }
    }

    package struct Admin: Sendable, Equatable {
        package var address = "127.0.0.1"
        package var port: UInt16 = 8080
        /// Path of a Unix socket whose file mode (0600) is the guard; no token is needed there.
        package var unixSocket: String?
        /// Tokens with scopes; `nil` for the file `tokens` in the data directory.
        package var tokensFile: String?
        /// Unknown tokens of one address in a minute, above which it is told to wait; 1 or more.
        package var maxFailures = 30
        package var tls = TLS()
        /// Whether plain HTTP may be spoken on an address that others reach.
        package var allowPlain = false

        package struct TLS: Sendable, Equatable {
            /// PEM file with the certificate and those that vouch for it; `nil` for plain HTTP.
            package var certificate: String?
            /// PEM file with its private key; there whenever the certificate is.
            package var key: String?
            package var minimumVersion = HermesConfiguration.TLS.Version.tls12
            /// PEM file with those who may issue the certificates that callers must show; `nil`
            /// asks for none.
            package var clientCAFile: String?

            package init() {}

            /// The certificate has its key: the configuration has been checked.
            package var isOn: Bool { certificate != nil }
        }

        package init() {}

        /// Whether only this machine can reach the address: `localhost`, 127.0.0.0/8 or `::1`.
        package var isLoopback: Bool { NetworkAddress(address)?.isLoopback ?? false }
    }

    /// When a message counts as stored.
    package enum Durability: Sendable, Equatable {
        /// Once it is on the disk.
        case sync
        /// Once it is written; the disk has it within this time, 1 ms to 60 s.
        case interval(Duration)
        /// In memory only: a restart loses sessions, queues and retained messages.
        case none
    }

    package struct Logging: Sendable, Equatable {
        package var level = Level.info
        package var format = Format.text

        package enum Level: String, Sendable, Equatable, CaseIterable {
            case trace, debug, info, notice, warning, error, critical
        }

        package enum Format: String, Sendable, Equatable, CaseIterable {
            case text, json
        }

        package init() {}
    }

    package struct Orders: Sendable, Equatable {
        /// Holds `{salesId}` and `{orderId}`, each a whole topic level.
        package var topicTemplate = "orders/{salesId}/{orderId}/status"
        /// Names the sequence that the update counts in; holds `{salesId}`.
        package var channelTemplate = "orders/{salesId}"
        /// QoS of published updates: 0, 1 or 2.
        package var qos: UInt8 = 1

        package init() {}
    }
}
