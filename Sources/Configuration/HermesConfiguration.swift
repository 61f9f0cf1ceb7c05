import BrokerAPI
import MQTTCodec

/// A validated configuration; its users need no further checks.
package struct HermesConfiguration: Sendable, Equatable {
    /// MQTT listeners; at least one.
    package var listeners: [Listener] = [Listener()]
    package var admin = Admin()
    /// Folder used by one broker at a time; created with mode 0700 when missing.
    package var dataDirectory = "data"
    package var durability = Durability.sync
    /// New messages wait while the data directory's file system has fewer free bytes.
    package var diskReserveBytes = 64 * 1024 * 1024
    /// Argon2id password file; `nil` when there are no users.
    package var passwordFile: String?
    /// ACL file; `nil` allows every client everything.
    package var aclFile: String?
    /// Interval of publishing the `$SYS/broker/...` topics; zero turns them off.
    package var sysInterval: Duration = .seconds(10)
    package var limits = BrokerLimits()
    package var logging = Logging()
    package var auth = Auth()
    package var orders = Orders()
    package var webhook = Webhook()
    package var receipts = Receipts()
    package var wakes = Wakes()

    package init() {}

    package struct Listener: Sendable, Equatable {
        /// Numeric IPv4 or IPv6 address, or `localhost`.
        package var address = "127.0.0.1"
        /// 0 lets the kernel choose a free port, which the log names.
        package var port: UInt16 = 1883
        /// `nil` allows anonymous clients on a loopback address only.
        package var allowAnonymous: Bool?
        /// Addresses and networks, such as 10.0.0.0/8, whose connections begin with a PROXY header.
        package var proxyFrom: [String] = []
        package var transport = Transport.mqtt
        package var webSocket = WebSocket()
        /// TLS settings; plain TCP without a certificate.
        package var tls = TLS()

        package init() {}

        /// What carries the packets.
        package enum Transport: String, Sendable, Equatable, CaseIterable {
            /// The connection itself.
            case mqtt
            /// Frames of WebSocket.
            case webSocket = "websocket"
        }
    }

    package struct WebSocket: Sendable, Equatable {
        /// The path of the request, from `/`.
        package var path = "/mqtt"
        /// Origins whose pages may connect, in lower case: `https://app.example.org`.
        package var origins: [String] = []
        package var token = Token.none

        /// Where the request may bring a token in place of the password of CONNECT.
        package enum Token: String, Sendable, Equatable, CaseIterable {
            /// Nowhere; what the request brings is not read.
            case none
            /// As `access_token` in the query.
            case query
            /// In the header `Authorization`.
            case header
            /// In one of the two.
            case any
        }

        package init() {}
    }

    package struct TLS: Sendable, Equatable {
        /// PEM files with a certificate and its chain; empty for plain TCP.
        package var certificates: [String] = []
        /// PEM files with the private keys, in the order of `certificates`.
        package var keys: [String] = []
        package var minimumVersion = Version.tls12
        package var clientCertificates = ClientCertificates.off
        /// PEM file with the authorities of clients; `nil` asks clients for no certificate.
        package var clientCAFile: String?
        /// PEM file with revocation lists.
        package var crlFile: String?
        /// True when the common name of a client's certificate is its user name.
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

        /// True when every client proves its user name by a certificate.
        package var identifiesEveryClient: Bool {
            isOn && clientCertificates == .required && userNameFromCertificate
        }
    }

    package struct Admin: Sendable, Equatable {
        package var address = "127.0.0.1"
        package var port: UInt16 = 8080
        /// Path of a Unix socket of mode 0600; requests through it need no token.
        package var unixSocket: String?
        /// Token file; `nil` for `tokens` in the data directory.
        package var tokensFile: String?
        /// Failed authentications that one address may have per minute; at least 1.
        package var maxFailures = 30
        package var tls = TLS()
        /// True when plain HTTP is allowed beyond loopback addresses.
        package var allowPlain = false
        package var page = Page.auto

        /// Whether the operator's page is served.
        package enum Page: String, Sendable, Equatable, CaseIterable {
            /// On a loopback address only.
            case auto
            case on, off
        }

        package struct TLS: Sendable, Equatable {
            /// PEM file with the certificate and its chain; `nil` for plain HTTP.
            package var certificate: String?
            /// PEM file with the private key; set whenever the certificate is.
            package var key: String?
            package var minimumVersion = HermesConfiguration.TLS.Version.tls12
            /// PEM file with the authorities of callers; `nil` asks callers for no certificate.
            package var clientCAFile: String?

            package init() {}

            /// Validation makes sure that a certificate has its key.
            package var isOn: Bool { certificate != nil }
        }

        package init() {}
    }

    /// The moment at which a message counts as stored.
    package enum Durability: Sendable, Equatable {
        /// After `fdatasync`.
        case sync
        /// After `write`. `fdatasync` follows within this time, 1 ms to 60 s.
        case interval(Duration)
        /// No storing: a restart loses sessions, queues and retained messages.
        case none
    }

    package struct Logging: Sendable, Equatable {
        package var level = Level.info
        package var format = Format.text
        /// The level of the lines about each connection and each end of one.
        package var connections = Level.info

        package enum Level: String, Sendable, Equatable, CaseIterable {
            case trace, debug, info, notice, warning, error, critical
        }

        package enum Format: String, Sendable, Equatable, CaseIterable {
            case text, json
        }

        package init() {}
    }

    package struct Orders: Sendable, Equatable {
        /// Topic name with `{sales_id}` and `{order_id}`, each a whole topic level.
        package var topicTemplate = "orders/{sales_id}/{order_id}/status"
        /// Name of the sequence that numbers the updates; contains `{sales_id}`.
        package var channelTemplate = "orders/{sales_id}"
        /// QoS of published updates: 0, 1 or 2.
        package var qos = QoS.atLeastOnce

        package init() {}
    }
}
